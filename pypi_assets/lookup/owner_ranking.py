"""Rank the projects that provide a module by the evidence that an import of the module means them.

docs/ask.md explains the ranking. The score of a candidate depends only on data that the answer shows: the module,
the project's names, and the `reasons`.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple, TypedDict

from packaging.utils import canonicalize_name

from pypi_assets.short_texts import cached_if_short

JUNK_ROOTS = frozenset(
    """
    _version app apps asset assets bench benchmark benchmarks bin ci common config configs conftest contrib core
    data demo demos dev dist doc docs documentation etc example examples experiment experiments fixtures
    functional_tests helper helpers images include integration integration_tests lib libs log logs main manage
    migrations misc model models notebooks noxfile other package packages plugins recipes requirements resource
    resources sample samples script scripts server service services settings setup share site site_packages src
    static stubs task tasks temp template templates test testing tests third_party tmp tool tools tutorial tutorials
    unit_tests unittests util utilities utils vendor vendored version
    """.split()  # noqa: SIM905 - a hundred quotes are no easier to read
)
"""Top-level names that many projects package by accident, such as a `tests` folder next to the real package."""


class OwnerReasons(TypedDict):
    """The evidence for the rank of a candidate.

    - `name_matches`: the project has the name of the module or of its first parts.
    - `dependents`: the number of projects with a live release that requires the candidate.
    - `first_live_serial`: the least serial since which one of its files is live.
    - `releases_providing`: how many of its `releases` provide the module.
    - `newest_provides`: the release that an installer would choose provides the module.
    - `declared`: that release declares the module as its own import name (PEP 794). None: it declares no import names.
    - `junk_root`: many projects have this top-level name by accident.
    - `quarantined`: the index has put the project in quarantine.
    - `stub_only`: the candidate only has type stubs for the module.
    """

    name_matches: bool
    dependents: int
    first_live_serial: int | None
    releases_providing: int
    releases: int
    newest_provides: bool
    declared: bool | None
    junk_root: bool
    quarantined: bool
    stub_only: bool


class OwnerCandidate(TypedDict):
    """A project that provides a module. Its `rank` counts from 1.

    `versions` are the versions that provide the module, in PEP 440 order.
    """

    project: str
    normalized: str
    rank: int
    score: float
    reasons: OwnerReasons
    versions: list[str]


class Found(NamedTuple):
    """A candidate without a rank."""

    project: str
    normalized: str
    reasons: OwnerReasons
    versions: list[str]


class Weights(NamedTuple):
    """The points that each reason adds to a score.

    `dependents` counts for each factor of ten of dependents, and `releases` for each factor of ten of releases that
    provide the module. `like` is for a project name that contains the module's name. `seniority` is multiplied by the
    project's age, as a share of the age of the oldest candidate. So forks, copies and squatters rank below the
    original.
    """

    matches: float = 0.8
    like: float = 0.25
    dependents: float = 2.0
    share: float = 1.0
    releases: float = 0.6
    newest: float = 0.5
    seniority: float = 0.9
    declared: float = 1.0
    undeclared: float = -1.0
    quarantined: float = -5.0
    stub_only: float = -15.0


WEIGHTS = Weights()


def is_junk_root(module: str) -> bool:
    """Check whether the top-level name of the module is one that many projects have by accident."""
    return module.partition(".")[0] in JUNK_ROOTS


def name_matches(module: str, normalized: str) -> bool:
    """Check whether a project (normalized) has the name of the module or of its first parts.

    >>> name_matches("google.cloud.storage.blob", "google-cloud-storage"), name_matches("yaml", "pyyaml")
    (True, False)
    """
    return normalized in _names_of(module)


def is_declared(module: str, declared: Iterable[str] | None) -> bool | None:
    """Check whether import names (PEP 794, as written) declare the module or a package that contains it.

    Return None if the project declares no import names.

    >>> is_declared("demo.a", ["demo", "_demo ; private"]), is_declared("_demo", ["demo", "_demo ; private"])
    (True, False)
    """
    if declared is None:
        return None
    names = {name.strip() for name in declared if "private" not in name.partition(";")[2]}
    return any(f"{module}.".startswith(f"{name}.") for name in names if name)


def ranked(module: str, found: Iterable[Found], serial: int, weights: Weights = WEIGHTS) -> list[OwnerCandidate]:
    """Return the candidates as of `serial`, the best first. Names break ties, so that answers are stable."""
    candidates = list(found)
    known = [since for one in candidates if (since := one.reasons["first_live_serial"]) is not None]
    longest = serial - min(known, default=serial) + 1
    scored = sorted(
        ((round(score(module, one, _seniority(one.reasons, serial, longest), weights), 3), one) for one in candidates),
        key=lambda entry: (-entry[0], entry[1].normalized),
    )
    return [
        OwnerCandidate(
            project=one.project,
            normalized=one.normalized,
            rank=rank,
            score=points,
            reasons=one.reasons,
            versions=one.versions,
        )
        for rank, (points, one) in enumerate(scored, 1)
    ]


def _seniority(reasons: OwnerReasons, serial: int, longest: int) -> float:
    since = reasons["first_live_serial"]
    return 0.0 if since is None else (serial - since + 1) / longest


def score(module: str, found: Found, seniority: float, weights: Weights = WEIGHTS) -> float:
    """Return the points of a candidate. `seniority` is its age as a share of the oldest candidate's age."""
    reasons = found.reasons
    points = weights.dependents * math.log10(1 + reasons["dependents"])
    if reasons["name_matches"]:
        points += weights.matches
    elif is_name_like(module, found.normalized):
        points += weights.like
    points += weights.share * reasons["releases_providing"] / max(1, reasons["releases"])
    points += weights.releases * math.log10(1 + reasons["releases_providing"])
    points += weights.newest * reasons["newest_provides"]
    points += weights.seniority * seniority
    if reasons["declared"] is not None:
        points += weights.declared if reasons["declared"] else weights.undeclared
    points += weights.quarantined * reasons["quarantined"]
    points += weights.stub_only * reasons["stub_only"]
    return points


def is_name_like(module: str, normalized: str) -> bool:
    """Check whether the project's name (normalized) contains the module's, as in python-dateutil and PyYAML."""
    joined = normalized.replace("-", "")
    return any(name in joined for name in _joined_names_of(module))


def in_words(reasons: OwnerReasons) -> list[str]:
    """Return the reasons as short texts for people, the weightiest first.

    >>> in_words({**reasons, "dependents": 1, "releases": 3, "releases_providing": 2})  # doctest: +SKIP
    ['1 dependent', 'in 2 of 3 releases, also the newest']
    """
    providing, releases = reasons["releases_providing"], reasons["releases"]
    words = [
        "only stubs for type checkers" if reasons["stub_only"] else "",
        "in quarantine" if reasons["quarantined"] else "",
        "many carry this top-level name by accident" if reasons["junk_root"] else "",
        "has the name" if reasons["name_matches"] else "",
        f"{reasons['dependents']:,} dependent{'' if reasons['dependents'] == 1 else 's'}",
        _releases_in_words(providing, releases, newest=reasons["newest_provides"]),
        "" if reasons["first_live_serial"] is None else f"live since serial {reasons['first_live_serial']}",
    ]
    if reasons["declared"] is not None:
        words.append("declares it" if reasons["declared"] else "declares others, and not this one")
    return [word for word in words if word]


def _releases_in_words(providing: int, releases: int, *, newest: bool) -> str:
    if providing == releases:
        return f"in all {releases} releases" if releases > 1 else "in its one release"
    return f"in {providing} of {releases} releases, {'also' if newest else 'not'} the newest"


@cached_if_short(maxsize=1_024)
def _names_of(module: str) -> frozenset[str]:
    """Return the normalized names of the module and of its first parts."""
    parts = module.split(".")
    return frozenset(canonicalize_name(".".join(parts[:count])) for count in range(1, len(parts) + 1))


@cached_if_short(maxsize=1_024)
def _joined_names_of(module: str) -> tuple[str, ...]:
    """Return the top-level name and the full name of the module, normalized, without separators."""
    names = (canonicalize_name(name).replace("-", "") for name in (module.partition(".")[0], module))
    return tuple({name for name in names if name})
