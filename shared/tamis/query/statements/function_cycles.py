"""Cycles of functions that call each other, found in linear time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


def cycles(calls: Mapping[str, set[str]]) -> Iterator[tuple[list[str], set[str]]]:
    """For each set of functions that all call one another, directly or not: the shortest cycle through its
    first function by name, and the whole set.

    >>> found = cycles({"f": {"g"}, "g": {"f", "h"}, "h": set(), "k": {"k"}})
    >>> [(cycle, sorted(component)) for cycle, component in found]
    [(['f', 'g'], ['f', 'g']), (['k'], ['k'])]
    """
    for component in _components(calls):
        first = min(component)
        if len(component) > 1 or first in calls[first]:
            yield _shortest(calls, first, component), component


def _components(calls: Mapping[str, set[str]]) -> list[set[str]]:
    """The strongly connected components (Tarjan 1972), without recursion, since a chain may have thousands of
    functions.
    """
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[set[str]] = []
    for root in calls:
        if root in numbers:
            continue
        path = [(root, iter(sorted(calls[root])))]
        while path:
            name, following = path[-1]
            if name not in numbers:
                numbers[name] = lowest[name] = len(numbers)
                stack.append(name)
                on_stack.add(name)
            called = next((one for one in following if one in calls), None)
            if called is None:
                path.pop()
                if path:
                    above = path[-1][0]
                    lowest[above] = min(lowest[above], lowest[name])
                if lowest[name] == numbers[name]:
                    component = {stack.pop()}
                    while name not in component:
                        component.add(stack.pop())
                    on_stack -= component
                    found.append(component)
            elif called not in numbers:
                path.append((called, iter(sorted(calls[called]))))
            elif called in on_stack:
                lowest[name] = min(lowest[name], numbers[called])
    return found


def _shortest(calls: Mapping[str, set[str]], start: str, within: set[str]) -> list[str]:
    """The shortest chain of calls from `start` back to itself; its component has one."""
    caller: dict[str, str] = {}
    queue = [start]
    for name in queue:
        if start in calls[name]:
            chain = [name]
            while chain[-1] != start:
                chain.append(caller[chain[-1]])
            return chain[::-1]
        for called in sorted(calls[name] & within):
            if called not in caller and called != start:
                caller[called] = name
                queue.append(called)
    raise AssertionError("no cycle")
