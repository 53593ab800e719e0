"""Decides whether a difference depends only on the order in which several sessions continue.

A step that ends a transaction may unblock several sessions. The server's threads decide which
session gets a lock first, so the two engines may differ by chance. The script is played again in
each order: the statements that waited, and the statements deferred after them, are sent one after
the other after that step."""

from itertools import permutations

from sessions import DEADLOCK

RACERS_MAX = 3


def racers(entries: list, number: int, left_out: set) -> list:
    """Returns each session's first step still unanswered at step `number`, except `left_out`."""
    answered = {entry.number for step in entries[:number] for entry in step.woke}
    waiting = {}   # session -> its first step without an answer
    for entry in entries[:number]:
        if (entry.waited or entry.deferred) and entry.number not in answered | left_out:
            waiting.setdefault(entry.name, entry.number)
    return sorted(waiting.values())


def done_in_an_order(number: int, played: list, compare) -> list:
    """Returns, for each engine, whether its outcome occurs in one of the orders of the statements
    that waited at step `number`; returns [] unless both engines agree in every order. `played`
    holds each engine's entries and the answers at that step. `compare(steps)` plays both engines. A
    victim that both engines ended in a deadlock at that step is rolled back before the step."""
    entries, answers = played[0][0], [answers for _, answers in played]
    texts = [(entry.name, entry.text) for entry in entries]   # with the ROLLBACKs at the end
    victims = common_victims(number, *answers)
    gone = {victim.number for victim in victims}
    # also dropped: statements that were still deferred at the end of the script
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
    """Returns the statements that both engines ended in a deadlock at the step after a wait."""
    ended = [mine[n] for n in mine.keys() & other.keys()
             if mine[n].outcome.error == other[n].outcome.error == DEADLOCK and n != number]
    return [victim for victim in ended
            if not any(e.name == victim.name and n < victim.number
                       for side in (mine, other) for n, e in side.items())]


def ordered(texts: list, number: int, order: tuple) -> list:
    """Returns the numbers of the steps up to `number`, reordered: the steps in `order` follow it,
    and then the later steps of their sessions."""
    late = {texts[n][0]: n for n in order}
    behind = [n for n in range(number) if texts[n][0] in late and n > late[texts[n][0]]]
    before = [n for n in range(number + 1) if n not in order and n not in behind]
    return before + list(order) + sorted(behind, key=lambda n: (texts[n][0], n))


def answers_from(numbers: list, first: int, entries: list) -> dict:
    """Returns step -> outcome of the answers at `numbers[first]` and later steps."""
    found = {}
    for at, entry in enumerate(entries[first:len(numbers)], first):
        if not entry.waited and not entry.deferred and entry.outcome is not None:
            found[numbers[at]] = entry.outcome.key()
        found.update({numbers[woken.number]: woken.outcome.key() for woken in entry.woke})
    return found
