"""Ranks the projects that provide a module by the evidence that one of them is meant by it. docs/owners.md explains it.

The score of a candidate follows from what is answered of it alone: the module, the names of the project, and `reasons`.
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
"""Top-level names that many projects carry by accident: what lies next to a package, and was packed with it."""


class OwnerReasons(TypedDict):
    """Why a candidate has its rank.

    `name_matches`: the project is called like the module, or like its first parts. `dependents` is the count of
    projects with a live release that requires the candidate. `first_live_serial` is the least serial since which one of
    its files is live. `releases_providing` of its `releases` provide the module, and `newest_provides` is whether the
    one that an installer would choose does. `declared` is whether that one declares the module as its own (PEP 794);
    None: it declares nothing. `junk_root`: many projects carry the top-level name by accident. `quarantined`: the index
    has the project in quarantine. `stub_only`: the candidate describes the module for type checkers, and lacks it.
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
    """A project that provides a module: its `rank`, from 1 on, and the `versions` that do, in PEP 440's order."""

    project: str
    normalized: str
    rank: int
    score: float
    reasons: OwnerReasons
    versions: list[str]


class Found(NamedTuple):
    """A candidate that has no rank yet."""

    project: str
    normalized: str
    reasons: OwnerReasons
    versions: list[str]


class Weights(NamedTuple):
    """What each reason adds to a score.

    `dependents` counts for each factor of ten, and so does `releases`, of those that provide the module. `like` is for
    a name that contains the module's. `seniority` counts by the time since which a project has been live, as a share of
    that of the candidate which has been longest: forks, copies and squats come after what they copy.
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
    """Whether many projects carry the top-level name of the module by accident."""
    return module.partition(".")[0] in JUNK_ROOTS


def name_matches(module: str, normalized: str) -> bool:
    """Whether a project (normalized) is called like the module, or like its first parts.

    >>> name_matches("google.cloud.storage.blob", "google-cloud-storage"), name_matches("yaml", "pyyaml")
    (True, False)
    """
    return normalized in _names_of(module)


def is_declared(module: str, declared: Iterable[str] | None) -> bool | None:
    """Whether import names (PEP 794, as written) declare the module, or a package that it is in; None: there are none.

    >>> is_declared("demo.a", ["demo", "_demo ; private"]), is_declared("_demo", ["demo", "_demo ; private"])
    (True, False)
    """
    if declared is None:
        return None
    names = {name.strip() for name in declared if "private" not in name.partition(";")[2]}
    return any(f"{module}.".startswith(f"{name}.") for name in names if name)


def ranked(module: str, found: Iterable[Found], serial: int, weights: Weights = WEIGHTS) -> list[OwnerCandidate]:
    """The candidates as of `serial`, the best first. Of equal ones the name decides, so no answer varies."""
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
    """The points of a candidate that has been live for this share of the time that the longest one has."""
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
    """Whether the name of a project (normalized) contains that of the module, as python-dateutil and PyYAML do."""
    joined = normalized.replace("-", "")
    return any(name in joined for name in _joined_names_of(module))


def in_words(reasons: OwnerReasons) -> list[str]:
    """The reasons as people read them, the weightiest first.

    >>> in_words({**reasons, "dependents": 1, "releases": 3, "releases_providing": 2})  # doctest: +SKIP
    ['1 dependent', '2 of 3 releases provide it', 'the newest does']
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
    """What projects are called that are called like the module or its first parts."""
    parts = module.split(".")
    return frozenset(canonicalize_name(".".join(parts[:count])) for count in range(1, len(parts) + 1))


@cached_if_short(maxsize=1_024)
def _joined_names_of(module: str) -> tuple[str, ...]:
    """The first part of the module's name, and all of it, without what divides words."""
    names = (canonicalize_name(name).replace("-", "") for name in (module.partition(".")[0], module))
    return tuple({name for name in names if name})
