"""Finds the simplest marker that holds in some of several environments, and in none of the others."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations, product
from typing import NamedTuple

Variables = tuple[str, str, str]
"""The values of python_version, sys_platform and platform_machine: MARKER_VARIABLES of `targets.py`."""
_PYTHON, _PLATFORM, _MACHINE = "python_version", "sys_platform", "platform_machine"


class _Term(NamedTuple):
    """Comparisons that must all hold, the environments in which they do, as bits, and how complex they are."""

    bits: int
    cost: tuple[int, int]
    text: str


def simplest_marker(chosen: frozenset[Variables], environments: tuple[Variables, ...]) -> str | None:
    """The marker that holds in those of the environments that are `chosen`; None where all are.

    >>> windows, linux = ("3.12", "win32", "AMD64"), ("3.12", "linux", "x86_64")
    >>> simplest_marker(frozenset({windows}), (windows, linux))
    "sys_platform == 'win32'"

    Environments differ in one of their variables. Where one term suffices, it is the simplest one; otherwise terms are
    joined by `or`, as few as are found.
    """
    wanted = sum(1 << number for number, one in enumerate(environments) if one in chosen)
    if wanted == (1 << len(environments)) - 1:
        return None
    within = [term for term in _terms(environments) if term.bits and not term.bits & ~wanted]
    found = sorted(term.text for term in _pair(within, wanted) or _covering(within, wanted))
    texts = [f"({text})" if len(found) > 1 and " and " in text else text for text in found]
    return " or ".join(texts)


def _pair(terms: Sequence[_Term], wanted: int) -> list[_Term]:
    """The simplest term that holds in all that is wanted, else the two simplest that do together; maybe none."""
    one = min((term for term in terms if term.bits == wanted), key=lambda term: term.cost, default=None)
    if one is not None:
        return [one]
    simplest: dict[int, _Term] = {}
    for term in terms:
        if term.bits not in simplest or term.cost < simplest[term.bits].cost:
            simplest[term.bits] = term
    pairs = (pair for pair in combinations(simplest.values(), 2) if pair[0].bits | pair[1].bits == wanted)
    return list(min(pairs, key=lambda pair: _sum(pair[0].cost, pair[1].cost), default=()))


def _covering(terms: Sequence[_Term], wanted: int) -> list[_Term]:
    """Terms that together hold in all that is wanted: first those that hold in the most of what is left."""
    found, left = [], wanted
    while left:
        best = max(terms, key=lambda term: ((term.bits & left).bit_count(), [-part for part in term.cost]))
        found.append(best)
        left &= ~best.bits
    return found


@lru_cache(16)
def _terms(environments: tuple[Variables, ...]) -> list[_Term]:
    pythons, platforms, machines = (sorted({one[place] for one in environments}) for place in range(3))
    pythons.sort(key=_version)
    every = (1 << len(environments)) - 1
    terms = []
    for parts in product(
        _of_pythons(pythons, environments),
        _of_values(_PLATFORM, platforms, 1, environments),
        _of_values(_MACHINE, machines, 2, environments),
    ):
        bits = every
        for part in parts:
            bits &= part.bits
        text = " and ".join(part.text for part in parts if part.text)
        terms.append(_Term(bits, _sum(*(part.cost for part in parts)), text))
    return terms


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def _sum(*costs: tuple[int, int]) -> tuple[int, int]:
    return sum(cost[0] for cost in costs), sum(cost[1] for cost in costs)


def _of_pythons(pythons: Sequence[str], environments: Sequence[Variables]) -> Iterator[_Term]:
    """Nothing about Python, or a range of its versions."""

    def term(cost: tuple[int, int], text: str, first: int, after: int) -> _Term:
        some = set(pythons[first:after])
        return _Term(sum(1 << number for number, one in enumerate(environments) if one[0] in some), cost, text)

    count = len(pythons)
    yield term((0, 0), "", 0, count)
    for place in range(1, count):
        yield term((1, 0), f"{_PYTHON} < '{pythons[place]}'", 0, place)
        yield term((1, 0), f"{_PYTHON} >= '{pythons[place]}'", place, count)
    for first, after in combinations(range(1, count), 2):
        if after == first + 1:
            yield term((1, 0), f"{_PYTHON} == '{pythons[first]}'", first, after)
        else:
            text = f"{_PYTHON} >= '{pythons[first]}' and {_PYTHON} < '{pythons[after]}'"
            yield term((2, 0), text, first, after)


def _of_values(name: str, values: Sequence[str], place: int, environments: Sequence[Variables]) -> Iterator[_Term]:
    """Nothing about a variable, or that it has one value, or that it has another one.

    Of terms that are else as complex, one about the platform comes before one about the machine, and `==` before `!=`.
    """
    every = (1 << len(environments)) - 1
    yield _Term(every, (0, 0), "")
    for value in values:
        bits = sum(1 << number for number, one in enumerate(environments) if one[place] == value)
        yield _Term(bits, (1, 2 * place), f"{name} == '{value}'")
        yield _Term(every & ~bits, (1, 2 * place + 1), f"{name} != '{value}'")
