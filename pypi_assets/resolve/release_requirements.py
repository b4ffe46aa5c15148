"""What a release requires with each of its extras.

A release can have thousands of extras, and thousands of requirements: so a requirement is looked at for those extras
alone that its marker names.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from packaging.markers import Marker
from packaging.utils import canonicalize_name

from pypi_assets.resolve.questions import ResolveError, Wanted, parse_wanted

_EXTRA, _OTHERWISE = "extra", ""


class ReleaseRequirements:
    """The requirements of a release, in their order. `holds` decides whether one holds with an extra, or with none."""

    def __init__(self, texts: Iterable[str], holds: Callable[[Wanted, str], bool]) -> None:
        self._holds = holds
        self._all: list[Wanted] = []
        self.errors: list[ResolveError] = []
        """Of what is no requirement."""
        for text in texts:
            try:
                self._all.append(parse_wanted(text))
            except ResolveError as error:
                self.errors.append(error)

    @cached_property
    def held(self) -> Sequence[Wanted]:
        """Those that hold without an extra."""
        return [self._all[place] for place in sorted(self._held)]

    def added(self, extra: str) -> list[Wanted]:
        """Those that hold with an extra, and not without."""
        found = (self._all[place] for place in sorted(self._naming(extra) - self._held))
        return [wanted for wanted in found if self._holds(wanted, extra)]

    def held_with(self, extras: Sequence[str]) -> list[Wanted]:
        """Those that hold with one of these extras; without extras, those that hold with none."""
        if not extras:
            return list(self.held)
        found = {place for extra in extras for place in self._naming(extra) if self._holds(self._all[place], extra)}
        found |= self._held.difference(frozenset.intersection(*map(self._naming, extras)))
        return [self._all[place] for place in sorted(found)]

    @cached_property
    def _held(self) -> frozenset[int]:
        return frozenset(place for place, wanted in enumerate(self._all) if self._holds(wanted, ""))

    def _naming(self, extra: str) -> frozenset[int]:
        """The places of those whose markers name the extra, or compare extras in another way than by `==`."""
        return self._places.get(extra, self._places[_OTHERWISE])

    @cached_property
    def _places(self) -> Mapping[str, frozenset[int]]:
        named: defaultdict[str, list[int]] = defaultdict(list)
        for place, wanted in enumerate(self._all):
            for name in () if wanted.marker is None else _named_extras(wanted.marker):
                named[name].append(place)
        otherwise = frozenset(named.pop(_OTHERWISE, ()))
        return {_OTHERWISE: otherwise} | {name: otherwise.union(places) for name, places in named.items()}


@lru_cache(maxsize=2_048)  # each can have thousands of characters
def _named_extras(marker: Marker) -> frozenset[str]:
    """The extras that a marker compares with by `==`; _OTHERWISE where it compares extras in another way."""
    found = set()
    waiting: list[Any] = [marker._markers]  # packaging has no public way to look into a marker
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            waiting += part
        elif isinstance(part, tuple):
            left, operator, right = part
            variable, value = (left, right) if type(left).__name__ == "Variable" else (right, left)
            if variable.value == _EXTRA:
                found.add(canonicalize_name(value.value) if operator.value == "==" else _OTHERWISE)
    return frozenset(found)
