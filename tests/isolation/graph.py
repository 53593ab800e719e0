"""Cycles in a graph of events, each edge with a kind and the reason for it."""

from collections import deque


class Graph:
    """Nodes are numbers; an edge says what must have happened before what, and why."""

    def __init__(self):
        self.out = []     # node -> {node: (kind, why)}
        self.labels = []

    def node(self, label) -> int:
        """A new node."""
        self.out.append({})
        self.labels.append(label)
        return len(self.out) - 1

    def edge(self, source: int, target: int, kind: str, why=None) -> None:
        """`source` before `target`; the first reason stays."""
        if source != target:
            self.out[source].setdefault(target, (kind, why))

    def components(self) -> list:
        """Strongly connected components of more than one node (Tarjan, without recursion)."""
        index, low, on_stack, stack, found, counter = {}, {}, set(), [], [], 0
        for root in range(len(self.out)):
            if root in index:
                continue
            index[root] = low[root] = counter
            counter += 1
            stack.append(root)
            on_stack.add(root)
            work = [(root, iter(self.out[root]))]
            while work:
                node, targets = work[-1]
                for target in targets:
                    if target not in index:
                        index[target] = low[target] = counter
                        counter += 1
                        stack.append(target)
                        on_stack.add(target)
                        work.append((target, iter(self.out[target])))
                        break
                    if target in on_stack:
                        low[node] = min(low[node], index[target])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[node])
                    if low[node] == index[node]:
                        component = set()
                        while True:
                            member = stack.pop()
                            on_stack.discard(member)
                            component.add(member)
                            if member == node:
                                break
                        if len(component) > 1:
                            found.append(component)
        return found

    def shortest_cycle(self, component: set, starts) -> list:
        """The shortest cycle inside the component through one of `starts`; a list of nodes."""
        best = []
        for start in starts:
            cycle = self._cycle_through(start, component)
            if cycle and (not best or len(cycle) < len(best)):
                best = cycle
        return best

    def _cycle_through(self, start: int, component: set) -> list:
        came, queue = {start: None}, deque([start])
        while queue:
            node = queue.popleft()
            for target in self.out[node]:
                if target == start:
                    path = [node]
                    while came[path[-1]] is not None:
                        path.append(came[path[-1]])
                    return path[::-1]
                if target in component and target not in came:
                    came[target] = node
                    queue.append(target)
        return []
