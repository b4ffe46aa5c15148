"""The versions of a project in the order of PEP 440, and the ranges of positions that specifiers allow.

The version at position N is bit N of sets. Nothing here depends on files or on an environment.
"""

from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache
from itertools import compress, groupby, islice
from operator import eq, itemgetter
from typing import NamedTuple

from packaging.specifiers import Specifier, SpecifierSet
from packaging.version import Version

from pypi_assets.distributions.requirements import parsed_version
from pypi_assets.version_order import VersionKey, version_key

_ANY_SERIES = ".*"
_KEY, _IS_PRERELEASE, _TEXT = map(itemgetter, range(3))
_LONGEST = 100
"""In characters. Longer versions are not cached."""


class _Ranked(NamedTuple):
    """A version as written, with the key of its place in the order. Equal versions have equal keys."""

    key: bytes
    is_prerelease: bool
    text: str


class Positions:
    """The versions of a project in ascending order. `names` has the spellings of each, the shortest first.

    `stable` has the bits of all versions that are not pre-releases. Texts that are not versions are skipped.
    """

    def __init__(self, names: Iterable[str]) -> None:
        written = list(names)
        rank = _cached_rank if max(map(len, written), default=0) <= _LONGEST else _ranked
        ranked = list(filter(None, map(rank, written)))
        ranked.sort(key=_KEY)
        self._keys = list(map(_KEY, ranked))
        if any(map(eq, self._keys, islice(self._keys, 1, None))):
            same = [list(group) for _, group in groupby(ranked, key=_KEY)]
            self._keys = [group[0].key for group in same]
            self.names = [_by_length(one.text for one in group) for group in same]
            ranked = [group[0] for group in same]
        else:
            self.names = list(zip(map(_TEXT, ranked), strict=True))
        self.known = (1 << len(ranked)) - 1
        prereleases = compress(range(len(ranked)), map(_IS_PRERELEASE, ranked))
        self.stable = self.known & ~sum(1 << number for number in prereleases)
        self._ranges: dict[tuple[str, bool], int] = {}

    @property
    def count(self) -> int:
        """Return the number of versions."""
        return len(self._keys)

    def version(self, number: int) -> Version:
        """Return the version at a position, in its shortest spelling, whatever the order of the releases is."""
        return Version(self.names[number][0])

    def number_of(self, version: str) -> int | None:
        """Return the position of a version, in any spelling, or None if the project does not have it."""
        ranked = _ranked(version)
        if ranked is None:
            return None
        number = bisect_left(self._keys, ranked.key)
        return number if self._keys[number : number + 1] == [ranked.key] else None

    def newest_first(self) -> list[str]:
        """Return the names of all releases, newest first."""
        return [name for names in reversed(self.names) for name in names]

    def allowed(self, specifier: SpecifierSet, *, exact_as_text: bool = True) -> int:
        """Return the bits of the versions that a specifier allows, pre-releases included.

        `===` compares texts, or versions if not `exact_as_text`.
        """
        key = str(specifier), exact_as_text
        bits = self._ranges.get(key)
        if bits is None:
            bits = self.known
            for one in specifier:
                bits &= self._allowed_by(one, exact_as_text=exact_as_text)
            self._ranges[key] = bits
        return bits

    def _allowed_by(self, one: Specifier, *, exact_as_text: bool) -> int:
        operator, wanted = one.operator, one.version
        if operator == "===":
            return self._filtered(one) if exact_as_text else self._bit(self.number_of(wanted))
        if operator == "!=":
            return self.known & ~self._allowed_by(Specifier(f"=={wanted}"), exact_as_text=exact_as_text)
        if wanted.endswith(_ANY_SERIES):
            return self._run(one, self._start(f"{wanted.removesuffix(_ANY_SERIES)}.dev0"))
        start = self._start(wanted)
        if operator in {"==", "~="}:
            return self._run(one, start)
        if operator == ">=":
            return self.known & -(1 << start)
        if operator == "<=":
            return self._run(one, start) | (1 << start) - 1  # locals of the version are allowed
        version = parsed_version(wanted)
        if version is not None and not (version.is_postrelease or version.local):
            # the versions that belong to a final release are next to it, and not allowed either
            if operator == "<":
                return (1 << (start if version.is_prerelease else self._start(f"{wanted}.dev0"))) - 1
            if not version.is_prerelease:
                return self.known & -(1 << start) & ~self._run(one, start, is_allowed=False)
        return self._filtered(one)

    def _start(self, version: str) -> int:
        ranked = _ranked(version)
        return self.count if ranked is None else bisect_left(self._keys, ranked.key)

    def _run(self, one: Specifier, start: int, *, is_allowed: bool = True) -> int:
        """Return the bits of the versions from `start` on that are allowed, or are not, up to the first other one."""
        after, step = start, 1
        while after < self.count and self._allows(one, after) is is_allowed:
            after, step = after + step, step * 2
        after = bisect_left(
            range(self.count),
            True,
            max(start, after - step // 2),
            min(after, self.count),
            key=lambda number: self._allows(one, number) is not is_allowed,
        )
        return (1 << after) - (1 << start)

    def _allows(self, one: Specifier, number: int) -> bool:
        return one.contains(self.version(number), prereleases=True)

    def _filtered(self, one: Specifier) -> int:
        """Return the bits of a specifier whose versions may have gaps between them."""
        return sum(1 << number for number in range(self.count) if self._allows(one, number))

    @staticmethod
    def _bit(number: int | None) -> int:
        return 0 if number is None else 1 << number


def _by_length(spellings: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(spellings, key=lambda text: (len(text), text)))


def _ranked(text: str) -> _Ranked | None:
    return (_cached_rank if len(text) <= _LONGEST else _rank)(text)


def _rank(text: str) -> _Ranked | None:
    version = parsed_version(text)
    if version is None:
        return None
    return _Ranked(_packed(version_key(text)), version.is_prerelease, text)


def _packed(key: VersionKey) -> bytes:
    """Return a sort key of the same order as bytes, without the spelling. Nested tuples take longer to compare.

    A byte before each part distinguishes the kinds of parts, and 0 ends a list, so that shorter lists come first.
    """
    _, epoch, release, (letter, *number), post, (is_no_dev, dev), has_local, local, _ = key
    packed = [_number(epoch), *(b"\1" + _number(part) for part in release), b"\0"]
    packed += [letter[:1].encode() or b"\0", *map(_number, number)]
    packed.append(_number(post + 1))
    packed.append(b"\1" if is_no_dev else b"\0" + _number(dev))
    if has_local:
        packed += [b"\2" + _number(part) if is_digit else b"\1" + part.encode() + b"\0" for is_digit, part in local]
    return b"".join([*packed, b"\0"])


def _number(value: int) -> bytes:
    size = (value.bit_length() + 7) // 8
    return size.to_bytes(2, "big") + value.to_bytes(size, "big")


_cached_rank = lru_cache(maxsize=131_072)(_rank)
