"""Split a long table of inputs into slices, one per test, so that parallel workers share the table."""

from collections.abc import Sequence
from typing import TypeVar

Row = TypeVar("Row")


def slices(rows: Sequence[Row], count: int) -> list[list[Row]]:
    """Return all rows in `count` lists. Neighbouring rows, which tend to take equally long, are in different lists.

    >>> slices("abcde", 2)
    [['a', 'c', 'e'], ['b', 'd']]
    """
    return [list(rows[start::count]) for start in range(count)]
