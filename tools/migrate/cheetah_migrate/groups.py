"""Which tables have to go together: those that constraints connect.

A constraint needs both its tables in one engine. So if one table of a group cannot go, none can,
and each of the others has a chain of constraints that leads to it.
"""

from collections import deque
from dataclasses import dataclass, field


@dataclass
class Group:
    """Tables (as places) that constraints connect, in the order of their names; one table alone is
    a group too. `stays` says why each of them stays, if they do."""

    places: list
    constraints: list
    stays: dict = field(default_factory=dict)


def connected(places: list, constraints: list) -> list:
    """The groups that these tables belong to; with tables that only constraints name."""
    neighbours = {place: set() for place in places}
    for constraint in constraints:
        neighbours.setdefault(constraint.child, set()).add(constraint.parent)
        neighbours.setdefault(constraint.parent, set()).add(constraint.child)
    group_of, groups = {}, []
    for start in sorted(neighbours):
        if start in group_of:
            continue
        found, queue = {start}, [start]
        while queue:
            fresh = neighbours[queue.pop()] - found
            found |= fresh
            queue += fresh
        groups.append(Group(sorted(found), []))
        group_of |= dict.fromkeys(found, groups[-1])
    for constraint in constraints:
        group_of[constraint.child].constraints.append(constraint)
    wanted = set(places)
    return [group for group in groups if wanted & set(group.places)]


def hold(group: Group, reasons: dict) -> None:
    """Let a group stay if some of its tables cannot go: `reasons` by place. Says for each of the
    other tables which constraint leads to one of those."""
    group.stays = {place: reasons[place] for place in group.places if place in reasons}
    queue = deque(group.stays)
    while queue:
        place = queue.popleft()
        for constraint in group.constraints:
            for here, there in ((constraint.child, constraint.parent),
                                (constraint.parent, constraint.child)):
                if there == place and here not in group.stays:
                    group.stays[here] = f"connected with {there} by the constraint {constraint}"
                    queue.append(here)
