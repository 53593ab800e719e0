"""Several sessions go on at once: is a difference a matter of which of them came first, and of nothing else?

A step that ends a transaction may let several others go on. Which one gets a lock first is left to the threads of the server, so
the two engines may differ by chance. The script is played again in each order: the statements that waited, and what was deferred behind
them, are sent after that step, one after the other.
"""

from itertools import permutations

RACERS_MAX = 3


def racers(entries: list, number: int) -> list:
    """Steps of the statements that waited when step `number` came; none when it was one only, or more than are played in every order."""
    answered = {entry.number for step in entries[:number] for entry in step.woke}
    waiting = {}   # session -> its first step without an answer
    for entry in entries[:number]:
        if (entry.waited or entry.deferred) and entry.number not in answered:
            waiting.setdefault(entry.name, entry.number)
    return sorted(waiting.values()) if 1 < len(waiting) <= RACERS_MAX else []


def agree_in_every_order(number: int, played: list, compare) -> bool:
    """Whether both engines agree in every order of the statements that waited at step `number`, and each of them has done what it does in one of
    these orders. `played`: all entries of each engine, and what was answered at that step. `compare(steps)` plays both."""
    late = racers(played[0][0], number)
    texts = [(entry.name, entry.text) for entry in played[0][0]]   # with the ROLLBACKs at the end
    unlike = [{n: entry.outcome.key() for n, entry in answers.items()} for _, answers in played]
    for order in permutations(late):
        numbers = ordered(texts, number, order)
        comparison = compare([texts[n] for n in numbers])
        if comparison.fails():
            return False
        for side, entries in enumerate((comparison.theirs.entries, comparison.ours.entries)):
            if unlike[side] == answers_from(numbers, numbers.index(number), entries):
                unlike[side] = None
    return bool(late) and unlike == [None, None]


def ordered(texts: list, number: int, order: tuple) -> list:
    """Numbers of the steps up to `number`, with those of the sessions in `order` that waited sent behind it."""
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
