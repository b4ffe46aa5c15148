"""Slices of a long table of inputs: each slice is one test, so that parallel workers share the table."""

from collections.abc import Sequence
from typing import TypeVar

Row = TypeVar("Row")


def slices(rows: Sequence[Row], count: int) -> list[list[Row]]:
    """Return all rows in `count` lists; neighbours, which tend to cost alike, are in different lists.

    >>> slices("abcde", 2)
    [['a', 'c', 'e'], ['b', 'd']]
    """
    return [list(rows[start::count]) for start in range(count)]
