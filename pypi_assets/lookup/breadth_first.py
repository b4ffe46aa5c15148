"""Follows names step by step: what a name leads to, what that leads to, and so on."""

from collections.abc import Callable, Container, Iterable, Iterator
from typing import TypeVar

Reached = TypeVar("Reached")
Direct = Callable[[str, Container[str]], Iterable[tuple[str, Reached]]]
"""What a name leads to directly: other names, each with what is known of it. Names in the container may be left out."""


def breadth_first(direct: Direct[Reached], start: str, depth: int | None = None) -> Iterator[tuple[int, Reached]]:
    """What is known of each name that `start` leads to, once, with the least number of steps that lead to it.

    With `depth`, none comes from further away. `start` itself never comes. Each name that came is kept in memory.
    """
    found, level, steps = {start}, [start], 0
    while level and (depth is None or steps < depth):
        steps += 1
        following = []
        for name in level:
            for reached, known in direct(name, found):
                if reached not in found:
                    found.add(reached)
                    following.append(reached)
                    yield steps, known
        level = following
