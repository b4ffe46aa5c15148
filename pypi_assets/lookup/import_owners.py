"""Which project is meant by an import: of its longest known module, all projects that provide it, ranked with reasons.

    owners(snapshot, ["yaml", "google.cloud.storage.blob"])

docs/owners.md describes the answer.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Protocol, TypedDict, TypeVar

from packaging.utils import canonicalize_name

from pypi_assets.errors import ExpectedError
from pypi_assets.leveldbs.datasets.modules.overview import Overview
from pypi_assets.leveldbs.format.version_order import canonical_version
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

LONGEST_MODULE = 500
MOST_PARTS = 32
"""No module is known with a longer name, or with more parts: docs/reading.md."""
Answered = TypeVar("Answered")
_STUB_FORMS = ("types-{}", "{}-stubs", "{}-types")
MOST_IN_A_BATCH = 100_000
"""How many candidates several imports may have together: memory is bounded, whatever is requested at once."""
_NAMED_BY = 5
"""The names of this many of the best candidates lead to stub-only distributions, next to the name of the module."""

ImportOwners = TypedDict(
    "ImportOwners", {"import": str, "module": str | None, "serial": int, "candidates": list[OwnerCandidate]}
)
"""An `import` as it was queried, the longest `module` that is known of it, and who provides that, the best first.

`module` is None, and there are no candidates, where nothing of it is known.
"""


class OwnerSource(Protocol):
    """Where candidates and their reasons come from: a snapshot. Names of projects are normalized."""

    @property
    def serial(self) -> int: ...

    def providing(self, modules: Collection[str], /) -> Callable[[str], list[Provider]]:
        """Return a function that lists the providers of any of these modules."""

    def stubs(self, module: str, projects: Collection[str], /) -> list[Provider]:
        """Return those of the projects whose stubs describe the module."""

    def overviews(self, projects: Collection[str], /) -> Mapping[str, Overview]:
        """Return the overview of each of these projects, which provide a module."""

    def dependents_of_each(self, projects: Collection[str], /) -> Mapping[str, int]:
        """Return the number of projects that require each of these; those that none requires may lack."""


class Evidence:
    """What candidates are ranked by. What was read of a project is kept for the other names of a batch."""

    def __init__(self, source: OwnerSource, modules: Collection[str] = ()) -> None:
        self.serial, self.providers, self.stubs = source.serial, source.providing(modules), source.stubs
        self._source = source
        self._overviews: dict[str, Overview] = {}
        self._dependents: dict[str, int] = {}

    def of(self, projects: Collection[str]) -> tuple[Mapping[str, Overview], Mapping[str, int]]:
        """Return the overviews of these projects, and the numbers of their dependents."""
        wanted = {project for project in projects if project not in self._overviews}
        if wanted:
            self._overviews |= self._source.overviews(wanted)
            self._dependents |= self._source.dependents_of_each(wanted)
        return self._overviews, self._dependents


class TooManyCandidatesError(ExpectedError):
    """The imports of a batch have more candidates than one answer may have."""


def owners(source: OwnerSource, names: Iterable[str], most: int | None = None) -> list[ImportOwners]:
    """Return the owners of each of the imports `names`, in their order, as a snapshot has them.

    >>> [found] = owners(snapshot, ["yaml"])
    >>> found["candidates"][0]["project"]
    'PyYAML'

    All candidates are ranked; with `most`, no more of each are returned. Modules that several of them lead to are
    looked up once. Raises TooManyCandidatesError for what several have together: of a single import, all candidates
    are an answer.
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
                f"{len(wanted)} imports have more than {MOST_IN_A_BATCH:,} candidates together: take fewer imports at"
                " once, or set a limit of candidates for each"
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
    """The modules that an import may be of, the longest first; none where it begins with what is no name.

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
    """The candidates that provide the module, without those that only describe it."""
    return ranked(module, _with_reasons(evidence, module, provided, stub_only=False), evidence.serial)


def _described_by_stubs(evidence: Evidence, modules: Iterable[str]) -> tuple[str | None, list[OwnerCandidate]]:
    """The longest of the modules that stubs describe, and its candidates, where no project provides any of them."""
    for module in modules:
        stubs = evidence.stubs(module, _stub_projects(module, ()))
        found = ranked(module, _with_reasons(evidence, module, stubs, stub_only=True), evidence.serial)
        if found:
            return module, found
    return None, []


def _stub_projects(module: str, candidates: Iterable[str]) -> set[str]:
    """What stub-only distributions of a module are called: after it, its first parts, or who provides it."""
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
