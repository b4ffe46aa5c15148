"""Generate texts that could make a regular expression slow, from its own literals, classes and repeated parts."""

import re
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

_CATEGORIES = {
    codes.CATEGORY_DIGIT: "0",
    codes.CATEGORY_NOT_DIGIT: "a",
    codes.CATEGORY_SPACE: " \n\t",
    codes.CATEGORY_NOT_SPACE: "a",
    codes.CATEGORY_WORD: "a0_",
    codes.CATEGORY_NOT_WORD: "- ",
}
_REPEATS = {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}
_OTHERS = "a 0-\n.'\""
_MOST_CHARACTERS = 12
_SUFFIXES = ("\x01", "")


@dataclass(frozen=True)
class Pump:
    """A prefix and a unit to repeat after it. `suffix` makes a match fail, or is empty."""

    prefix: str
    unit: str
    suffix: str

    def text(self, size: int) -> str:
        return self.prefix + self.unit * (size // len(self.unit)) + self.suffix


def pumps(pattern: re.Pattern[Any]) -> list[Pump]:
    """Return all pumps to try for a pattern."""
    flags = pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    tree = parser.parse(pattern.pattern, flags)
    atoms: set[str] = set()
    _collect_atoms(tree, atoms)
    repeated: set[tuple[str, str]] = set()
    _samples(tree, repeated, [""])
    singles = sorted(atom for atom in atoms if len(atom) == 1)[:_MOST_CHARACTERS]
    units = {*atoms, *(one + other for one in singles for other in singles if one != other)}
    prefixes = ["", *sorted(atoms, key=lambda atom: (-len(atom), atom))[:2]]
    found = {(prefix, unit) for prefix in prefixes for unit in units} | repeated | {("", unit) for _, unit in repeated}
    return [Pump(prefix, unit, suffix) for prefix, unit in sorted(found) for suffix in _SUFFIXES]


def _members(items: Iterable[tuple[Any, Any]]) -> set[str]:
    """Return characters of a class. For a negated class, return some characters that are not in it."""
    is_negated = False
    found: set[str] = set()
    for code, value in items:
        if code is codes.NEGATE:
            is_negated = True
        elif code is codes.LITERAL:
            found.add(chr(value))
        elif code is codes.RANGE:
            found.update((chr(value[0]), chr(value[1])))
        elif code is codes.CATEGORY:
            found.update(_CATEGORIES[value])
    return {other for other in _OTHERS if other not in found} if is_negated else found


def _parts(code: Any, value: Any) -> list[Any]:
    if code in _REPEATS:
        return [value[2]]
    if code is codes.SUBPATTERN:
        return [value[3]]
    if code is codes.BRANCH:
        return list(value[1])
    if code in {codes.ASSERT, codes.ASSERT_NOT}:
        return [value[1]]
    return [value] if code is codes.ATOMIC_GROUP else []


def _collect_atoms(tree: Any, atoms: set[str]) -> None:
    """Collect runs of literals, their single characters, and characters of each class."""
    run = ""
    for code, value in [*tree, (None, None)]:
        if code is codes.LITERAL:
            run += chr(value)
            continue
        atoms.update({run, *run} - {""})
        run = ""
        if code is codes.NOT_LITERAL:
            atoms.update({chr(value), "a" if value != ord("a") else "b"})
        elif code is codes.ANY:
            atoms.add("a")
        elif code is codes.IN:
            atoms.update(_members(value), {chr(each) for kind, each in value if kind is codes.LITERAL})
        for part in _parts(code, value):
            _collect_atoms(part, atoms)


def _samples(tree: Any, repeated: set[tuple[str, str]], before: list[str]) -> list[str]:
    """Return some texts that `tree` mostly matches. Add its repeated parts to `repeated`, with what may precede
    them.
    """
    now = [""]
    for code, value in tree:
        here = [first + last for first in before[:2] for last in now[:2]]
        if code is codes.LITERAL:
            next_ones = [chr(value)]
        elif code is codes.NOT_LITERAL:
            next_ones = ["a" if value != ord("a") else "b"]
        elif code is codes.ANY:
            next_ones = ["a"]
        elif code is codes.IN:
            next_ones = sorted(_members(value))
        elif code in _REPEATS:
            inner = _samples(value[2], repeated, here)
            repeated.update((start, unit) for unit in inner for start in here if unit)
            next_ones = [unit * max(value[0], 1) for unit in inner[:3]] + [""] * (value[0] == 0)
        elif code in {codes.ASSERT, codes.ASSERT_NOT}:
            _samples(value[1], repeated, here)
            continue
        else:
            next_ones = [each for part in _parts(code, value) for each in _samples(part, repeated, here)[:2]] or [""]
        now = [first + last for first in now[:3] for last in dict.fromkeys(next_ones[:4] or ["a"])][:6]
    return now


class _LateError(BaseException):
    pass


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """End the block after `seconds` of processor time. Regular expressions check for signals from time to time."""

    def ring(*_: object) -> None:
        raise _LateError

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    except _LateError:
        pass
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def seconds_of(pattern: re.Pattern[Any], method: str, text: str, limit_s: float) -> float:
    """Return the processor time of `method` on `text`, at most slightly above `limit_s`."""
    subject: Any = text.encode("utf-8", "replace") if isinstance(pattern.pattern, bytes) else text
    call = getattr(pattern, method)
    with _limited(limit_s):
        started = time.thread_time()
        call(subject)
        return time.thread_time() - started
    return limit_s


def slowest(pattern: re.Pattern[Any], method: str, size: int, limit_s: float) -> tuple[float, Pump]:
    """Return the longest time for a text of `size`, up to `limit_s`, and the pump of that text.

    All pumps are tried with small texts first, and only the slowest ones with longer texts.
    """
    tried = pumps(pattern)
    for part, kept in ((size // 512, 24), (size // 64, 6), (size // 8, 2), (size, 1)):
        timed = []
        for pump in tried:
            timed.append((seconds_of(pattern, method, pump.text(part), limit_s), pump))
            if timed[-1][0] >= limit_s:
                return timed[-1]
        timed.sort(key=lambda each: each[0], reverse=True)
        tried = [pump for _, pump in timed[:kept]]
    return timed[0]
