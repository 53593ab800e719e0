"""Finds cycles in a graph of events whose edges have a kind and a reason."""

from collections import deque


class Graph:
    """Nodes are numbers. An edge means that its source happened before its target, and why."""

    def __init__(self):
        self.out = []     # node -> {node: (kind, why)}
        self.labels = []

    def node(self, label) -> int:
        self.out.append({})
        self.labels.append(label)
        return len(self.out) - 1

    def edge(self, source: int, target: int, kind: str, why=None) -> None:
        """Records that `source` happened before `target`; the first reason stays."""
        if source != target:
            self.out[source].setdefault(target, (kind, why))

    def components(self) -> list:
        """Returns the strongly connected components of several nodes (Tarjan, iterative)."""
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
                        while node not in component:
                            component.add(stack.pop())
                        on_stack -= component
                        if len(component) > 1:
                            found.append(component)
        return found

    def shortest_cycle(self, component: set, starts) -> list:
        """Returns the nodes of the shortest cycle in the component through one of `starts`."""
        cycles = (self._cycle_through(start, component) for start in starts)
        return min(filter(None, cycles), key=len, default=[])

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
