"""Compares the solver with real uv and pip: same index, same serial, same environment.

`python -m pypi_assets_tests.resolve.truth --sets 1000 --with uv` draws an index and requirement sets, resolves each set
in each environment with both solvers, and prints the differences and a table. It exits with 0 if every solution is
valid, both solve the same sets, and at least 97 % of the sets have equal pins.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from packaging.version import Version

from pypi_assets.resolve.questions import Control, ResolutionQuestion, Semantics, parse_wanted
from pypi_assets.resolve.releases import past_index
from pypi_assets.resolve.resolving import UnsolvableError, resolve
from pypi_assets_tests.resolve.graph_index import ENVIRONMENTS, GraphIndex, Place, graph_index
from pypi_assets_tests.resolve.requirement_graphs import RequirementSet

LEAST_EQUAL = 0.97
"""The minimum share of solved sets with equal pins."""


@dataclass
class Seen:
    """The outcomes of the sets in one environment."""

    counts: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    differing: list[str] = field(default_factory=list)
    """Sets with two valid solutions whose pins differ."""
    wrong: list[str] = field(default_factory=list)
    """Sets that only one side solves, or with an invalid solution."""

    @property
    def equal_share(self) -> float:
        """Return the share of solved sets with equal pins."""
        return self.counts["equal"] / max(self.counts["solved"], 1)

    @property
    def is_good(self) -> bool:
        return not self.wrong and self.equal_share >= LEAST_EQUAL


def our_pins(index: GraphIndex, semantics: Semantics, wanted: RequirementSet, place: Place) -> Mapping[str, str] | None:
    """Return the solver's pins, or None if unsolvable."""
    question = ResolutionQuestion(
        requirements=tuple(map(parse_wanted, wanted.requirements)),
        constraints=tuple(map(parse_wanted, wanted.constraints)),
        environment=place.environment,
        semantics=semantics,
        prereleases=Control.for_all(wanted.prereleases),
        only_binary=True,
        uploaded_before=wanted.uploaded_before,
    )
    try:
        return resolve(past_index(index.catalog, wanted.serial), question).pins
    except UnsolvableError:
        return None


def resolve_sets(
    index: GraphIndex, installer: Semantics, sets: Sequence[RequirementSet], places: Sequence[Place]
) -> dict[str, Seen]:
    """Return, by environment, the outcomes of resolving each set with the installer and the solver."""
    seen = {place.name: Seen() for place in places}
    pairs = [(wanted, place) for wanted in sets for place in places]

    def theirs_of(pair: tuple[RequirementSet, Place]) -> tuple[Mapping[str, str] | None, float]:
        began = time.monotonic()
        return index.pins_of(installer, *pair), time.monotonic() - began

    with ThreadPoolExecutor(2 if installer is Semantics.UV else 1) as pool:
        for (wanted, place), (theirs, seconds) in zip(pairs, pool.map(theirs_of, pairs), strict=True):
            began = time.monotonic()
            ours = our_pins(index, installer, wanted, place)
            seen[place.name].seconds += Counter(theirs=seconds, ours=time.monotonic() - began)
            _compare(index, installer, wanted, place, ours, theirs, seen[place.name])
    return seen


def _compare(
    index: GraphIndex,
    semantics: Semantics,
    wanted: RequirementSet,
    place: Place,
    ours: Mapping[str, str] | None,
    theirs: Mapping[str, str] | None,
    seen: Seen,
) -> None:
    text = f"{place.name}: {wanted}"
    seen.counts["sets"] += 1
    wrong = [f"ours: {fault}" for fault in index.faults_of(semantics, wanted, place, ours)]
    if semantics is Semantics.PIP and index.faults_of(semantics, wanted, place, theirs):
        # after some conflicts pip's library returns versions that do not meet all requirements
        seen.counts["pip wrong"] += 1
        seen.wrong += ["\n  ".join([text, *wrong])] if wrong or ours is None else []
        return
    seen.counts["solved"] += theirs is not None
    wrong += [f"{semantics}: {fault}" for fault in index.faults_of(semantics, wanted, place, theirs)]
    if (ours is None) != (theirs is None):
        wrong.append(f"{'only ' + semantics if ours is None else 'only we'} find a solution: {ours or theirs}")
    if wrong:
        seen.wrong.append("\n  ".join([text, *wrong]))
    elif ours is not None and theirs is not None:
        differences = list(_differences(ours, theirs))
        seen.counts["equal"] += not differences
        if differences:
            seen.differing.append("\n  ".join([text, *differences]))


def _differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> Iterator[str]:
    """Return the pins that differ. Spellings of equal versions count as equal."""
    for name in sorted(ours.keys() | theirs.keys()):
        our, their = ours.get(name), theirs.get(name)
        if our is None or their is None or Version(our) != Version(their):
            yield f"{name}: ours {our}, theirs {their}"


def table(seen: Mapping[str, Seen]) -> Iterable[str]:
    """Return the outcomes by environment as lines of a table."""
    columns: Mapping[str, Callable[[Seen], object]] = {
        "sets": lambda outcome: outcome.counts["sets"],
        "solved": lambda outcome: outcome.counts["solved"],
        "wrong": lambda outcome: len(outcome.wrong),
        "equal pins": lambda outcome: f"{outcome.equal_share:.1%}",
        "ms theirs": lambda outcome: round(1000 * outcome.seconds["theirs"] / outcome.counts["sets"]),
        "ms ours": lambda outcome: round(1000 * outcome.seconds["ours"] / outcome.counts["sets"]),
    }
    yield f"{'':14}" + "".join(f"{name:>12}" for name in columns)
    for name, outcome in seen.items():
        yield f"{name:14}" + "".join(f"{column(outcome)!s:>12}" for column in columns.values())


def main() -> int:
    """Print the differences and the table, and return 1 if an environment is not good."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--with", dest="installer", type=Semantics, choices=list(Semantics), default=Semantics.UV)
    parser.add_argument("--projects", type=int, default=120)
    parser.add_argument("--environments", nargs="*", help="of those of the installer, by default all")
    parser.add_argument("--corpus", type=Path, nargs="*", default=[], help="folders of real wheels")
    options = parser.parse_args()
    corpus = [path for folder in options.corpus for path in sorted(folder.glob("*.whl"))]
    places = [Place.named(name) for name in options.environments or ENVIRONMENTS[options.installer]]
    folder = Path(tempfile.mkdtemp())
    try:
        with graph_index(folder, options.projects, options.seed, corpus) as index:
            seen = resolve_sets(index, options.installer, index.draw(options.sets, options.seed), places)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for outcome in seen.values():
        for text in [*outcome.wrong, *outcome.differing]:
            sys.stdout.write(f"{text}\n\n")
    sys.stdout.write("\n".join(table(seen)) + "\n")
    return 0 if all(outcome.is_good for outcome in seen.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
