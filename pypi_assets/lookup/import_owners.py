"""Find the project that an import comes from: all projects that provide its longest known module, ranked with reasons.

    owners(snapshot, ["yaml", "google.cloud.storage.blob"])

docs/ask.md describes the answer.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Protocol, TypedDict, TypeVar

from packaging.utils import canonicalize_name

from pypi_assets.errors import ExpectedError
from pypi_assets.leveldbs.datasets.modules.overview import Overview
from pypi_assets.lookup.owner_ranking import (
    Found,
    OwnerCandidate,
    OwnerReasons,
    is_declared,
    is_junk_root,
    name_matches,
    ranked,
)
from pypi_assets.lookup.providers import Provider
from pypi_assets.lookup.reader import require_text
from pypi_assets.version_order import canonical_version

LONGEST_MODULE = 500
MOST_PARTS = 32
"""Limits of module names in the datasets, in characters and in parts: see docs/reading.md."""
Answered = TypeVar("Answered")
_STUB_FORMS = ("types-{}", "{}-stubs", "{}-types")
MOST_IN_A_BATCH = 100_000
"""The number of candidates that the imports of one call may have together. It bounds the memory of a call."""
_NAMED_BY = 5
"""This many of the best candidates are also tried as names of stub-only distributions.

For `yaml`, with the best candidate `pyyaml`, these are `types-yaml` and `types-pyyaml`, for example.
"""

ImportOwners = TypedDict(
    "ImportOwners", {"import": str, "module": str | None, "serial": int, "candidates": list[OwnerCandidate]}
)
"""An `import` as it was queried, its longest known `module`, and the projects that provide this module, the best first.

If nothing is known of the import, `module` is None and there are no candidates.
"""


class OwnerSource(Protocol):
    """A source of candidates and their reasons, such as a snapshot. Project names are normalized."""

    @property
    def serial(self) -> int: ...

    def providing(self, modules: Collection[str], /) -> Callable[[str], list[Provider]]:
        """Return a function that lists the providers of one of these modules."""

    def stubs(self, module: str, projects: Collection[str], /) -> list[Provider]:
        """Return the providers among the projects whose stubs describe the module."""

    def overviews(self, projects: Collection[str], /) -> Mapping[str, Overview]:
        """Return the overview of each of these projects. Each must provide a module."""

    def dependents_of_each(self, projects: Collection[str], /) -> Mapping[str, int]:
        """Return the number of projects that require each of these. Projects without dependents may be missing."""


class Evidence:
    """The evidence for ranking candidates. It caches the evidence about a project for all imports of a batch."""

    def __init__(self, source: OwnerSource, modules: Collection[str] = ()) -> None:
        self.serial, self.providers, self.stubs = source.serial, source.providing(modules), source.stubs
        self._source = source
        self._overviews: dict[str, Overview] = {}
        self._dependents: dict[str, int] = {}

    def of(self, projects: Collection[str]) -> tuple[Mapping[str, Overview], Mapping[str, int]]:
        """Return the overviews of these projects, and their numbers of dependents. Both may have further projects."""
        wanted = {project for project in projects if project not in self._overviews}
        if wanted:
            self._overviews |= self._source.overviews(wanted)
            self._dependents |= self._source.dependents_of_each(wanted)
        return self._overviews, self._dependents


class TooManyCandidatesError(ExpectedError):
    """The imports of a batch have too many candidates for one answer."""


def owners(source: OwnerSource, names: Iterable[str], most: int | None = None) -> list[ImportOwners]:
    """Return the owners of the imports `names`, in the same order.

    >>> [found] = owners(snapshot, ["yaml"])
    >>> found["candidates"][0]["project"]
    'PyYAML'

    All candidates are ranked. `most` limits how many of them are returned for each import. A module that several
    imports share is looked up once. Raises TooManyCandidatesError if several imports have too many candidates together.
    A single import is always answered in full.
    """
    wanted = [require_text("owners", name) for name in names]
    longest = {name: list(prefixes(name)) for name in wanted}
    evidence = Evidence(source, {module for found in longest.values() for module in found})
    count = Counter(wanted)
    total = 0
    known: dict[str, str | None] = {}
    candidates: dict[str, list[OwnerCandidate]] = {}
    for name, modules in longest.items():
        module = None
        for one in modules:
            if one not in candidates and (provided := evidence.providers(one)):
                candidates[one] = _candidates(evidence, one, provided)[:most]
            if candidates.get(one):
                module = one
                break
        if module is None:
            module, candidates_of_stubs = _described_by_stubs(evidence, modules)
            if module is not None:
                candidates[module] = candidates_of_stubs[:most]
        known[name] = module
        if module is not None:
            total += count[name] * len(candidates[module])
        if total > MOST_IN_A_BATCH and len(wanted) > 1:
            raise TooManyCandidatesError(
                f"{len(wanted)} imports have more than {MOST_IN_A_BATCH:,} candidates together: ask for fewer imports"
                " at once, or set a limit of candidates for each"
            )
    return [
        {
            "import": name,
            "module": (module := known[name]),
            "serial": evidence.serial,
            "candidates": [] if module is None else candidates[module],
        }
        for name in wanted
    ]


def prefixes(name: str) -> Iterator[str]:
    """Return the modules that an import may name, the longest first. A part that is not an identifier ends the name.

    >>> list(prefixes("a.b.not-a-name.c"))
    ['a.b', 'a']
    """
    found: list[str] = []
    module = ""
    for part in name[: LONGEST_MODULE + 1].split(".", MOST_PARTS)[:MOST_PARTS]:
        module = f"{module}.{part}" if module else part
        if not part.isidentifier() or len(module) > LONGEST_MODULE:
            break
        found.append(module)
    return reversed(found)


def _candidates(evidence: Evidence, module: str, provided: list[Provider]) -> list[OwnerCandidate]:
    of_modules = ranked_providers(evidence, module, provided)
    named = _stub_projects(module, [one["normalized"] for one in of_modules[:_NAMED_BY]])
    stubs = evidence.stubs(module, named.difference(one.normalized for one in provided))
    if not stubs:
        return of_modules
    found = [Found(one["project"], one["normalized"], one["reasons"], one["versions"]) for one in of_modules]
    return ranked(module, [*found, *_with_reasons(evidence, module, stubs, stub_only=True)], evidence.serial)


def ranked_providers(evidence: Evidence, module: str, provided: list[Provider]) -> list[OwnerCandidate]:
    """Return the candidates that provide the module, without the projects that only have stubs for it."""
    return ranked(module, _with_reasons(evidence, module, provided, stub_only=False), evidence.serial)


def _described_by_stubs(evidence: Evidence, modules: Iterable[str]) -> tuple[str | None, list[OwnerCandidate]]:
    """Return the longest of the modules that is described by stubs, and its candidates.

    This is for imports whose modules are not provided by any project.
    """
    for module in modules:
        stubs = evidence.stubs(module, _stub_projects(module, ()))
        found = ranked(module, _with_reasons(evidence, module, stubs, stub_only=True), evidence.serial)
        if found:
            return module, found
    return None, []


def _stub_projects(module: str, candidates: Iterable[str]) -> set[str]:
    """Return the possible names of stub-only distributions of a module, such as `types-yaml`.

    They are formed from the module's name, from its first parts, and from the best candidates.
    """
    parts = module.split(".")
    lengths = {1, 2, 3, len(parts)}
    names = {canonicalize_name(".".join(parts[:length])) for length in lengths if length <= len(parts)}
    return {form.format(name) for name in (*names, *candidates) for form in _STUB_FORMS}


def _with_reasons(evidence: Evidence, module: str, provided: list[Provider], *, stub_only: bool) -> Iterator[Found]:
    projects = [one.normalized for one in provided]
    overviews, dependents = evidence.of(projects)
    junk_root = is_junk_root(module)
    for one in provided:
        overview = overviews[one.normalized]
        versions = [version for version in one.versions if version not in overview.rejected]
        if not versions:
            continue
        reasons = OwnerReasons(
            name_matches=name_matches(module, one.normalized),
            dependents=dependents.get(one.normalized, 0),
            first_live_serial=overview.first_live_serial,
            releases_providing=len(versions),
            releases=overview.releases,
            newest_provides=any(canonical_version(version) == overview.newest for version in reversed(versions)),
            declared=is_declared(module, overview.declared),
            junk_root=junk_root,
            quarantined=overview.is_quarantined,
            stub_only=stub_only,
        )
        yield Found(one.project, one.normalized, reasons, versions)
