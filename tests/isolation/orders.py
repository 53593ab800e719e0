"""Several sessions go on at once: is a difference a matter of which of them came first, and of
nothing else?

A step that ends a transaction may let several others go on. Which one gets a lock first is left to
the threads of the server, so the two engines may differ by chance. The script is played again in
each order: the statements that waited, and what was deferred behind them, are sent after that step,
one after the other.
"""

from itertools import permutations

from sessions import DEADLOCK

RACERS_MAX = 3


def racers(entries: list, number: int, left_out: set) -> list:
    """Steps of each session's first statement without an answer when step `number` came, but those
    `left_out`."""
    answered = {entry.number for step in entries[:number] for entry in step.woke}
    waiting = {}   # session -> its first step without an answer
    for entry in entries[:number]:
        if (entry.waited or entry.deferred) and entry.number not in answered | left_out:
            waiting.setdefault(entry.name, entry.number)
    return sorted(waiting.values())


def done_in_an_order(number: int, played: list, compare) -> list:
    """Of each engine, whether it has done what it does in one of the orders of the statements that
    waited at step `number`; nothing unless both agree in every order. `played`: all entries of each
    engine, and what was answered at that step. `compare(steps)` plays both. Whom both have ended in
    a deadlock at that step is rolled back before it."""
    entries, answers = played[0][0], [answers for _, answers in played]
    texts = [(entry.name, entry.text) for entry in entries]   # with the ROLLBACKs at the end
    victims = common_victims(number, *answers)
    gone = {victim.number for victim in victims}
    # by the end of the script
    dropped = gone | {entry.number for entry in entries if entry.deferred and entry.outcome is None}
    late = racers(entries, number, dropped)
    if len(late) > RACERS_MAX:
        return []
    unlike = [{n: entry.outcome.key() for n, entry in side.items() if n not in gone}
              for side in answers]
    for order in permutations(late):
        numbers = [n for n in ordered(texts, number, order) if n not in dropped]
        at = numbers.index(number)
        numbers[at:at] = [-1 - n for n in range(len(victims))]
        comparison = compare([texts[n] if n >= 0 else (victims[-1 - n].name, "ROLLBACK")
                              for n in numbers])
        if comparison.fails():
            return []
        for side, entries in enumerate((comparison.theirs.entries, comparison.ours.entries)):
            if unlike[side] == answers_from(numbers, numbers.index(number), entries):
                unlike[side] = None
    return [side is None for side in unlike] if late else []


def common_victims(number: int, mine: dict, other: dict) -> list:
    """What both engines ended in a deadlock at step `number`, where it waited by then."""
    ended = [mine[n] for n in mine.keys() & other.keys()
             if mine[n].outcome.error == other[n].outcome.error == DEADLOCK and n != number]
    return [victim for victim in ended
            if not any(e.name == victim.name and n < victim.number
                       for side in (mine, other) for n, e in side.items())]


def ordered(texts: list, number: int, order: tuple) -> list:
    """Numbers of the steps up to `number`, with those of the sessions in `order` that waited sent
    behind it."""
    late = {texts[n][0]: n for n in order}
    behind = [n for n in range(number) if texts[n][0] in late and n > late[texts[n][0]]]
    before = [n for n in range(number + 1) if n not in order and n not in behind]
    return before + list(order) + sorted(behind, key=lambda n: (texts[n][0], n))


def answers_from(numbers: list, first: int, entries: list) -> dict:
    """Step -> outcome of what was answered at the steps of `numbers` from the one at `first` on."""
    found = {}
    for at, entry in enumerate(entries[first:len(numbers)], first):
        if not entry.waited and not entry.deferred and entry.outcome is not None:
            found[numbers[at]] = entry.outcome.key()
        found.update({numbers[woken.number]: woken.outcome.key() for woken in entry.woke})
    return found
