"""Groups of tables that must be converted together because constraints connect them.

A constraint requires both its tables to have the same engine. So if one table of a group cannot be
converted, the others cannot either: a chain of constraints connects them to that table."""

from collections import deque
from dataclasses import dataclass, field


@dataclass
class Group:
    """Tables (as places) connected by constraints, sorted by name. A single table is a group, too.
    If the group stays, `stays` maps each table to the reason."""

    places: list
    constraints: list
    stays: dict = field(default_factory=dict)


def connected(places: list, constraints: list) -> list:
    """Returns the groups of these tables, including tables that only constraints name."""
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
    """Marks a group as staying if `reasons` names some of its tables. For each other table, the
    reason is the constraint that connects it to a staying table."""
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
