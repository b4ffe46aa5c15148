"""Which project is meant by an import: of its longest known module, all projects that provide it, ranked with reasons.

    owners(modules, depgraph, ["yaml", "google.cloud.storage.blob"])

`owners_at` has the same of an earlier serial, from the catalog. docs/owners.md describes the answer.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, TypeVar

from packaging.utils import canonicalize_name

from pypi_assets.distributions.installability import accepted_or_all
from pypi_assets.errors import ExpectedError
from pypi_assets.leveldbs.datasets import provided_names
from pypi_assets.leveldbs.datasets.depgraph.dependents import dependents_count_key
from pypi_assets.leveldbs.datasets.modules.overview import Overview, decode_overview, marks_of, overview_of
from pypi_assets.leveldbs.format.errors import LeveldbDamagedError, LeveldbError
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.newest_release import newest_release
from pypi_assets.leveldbs.format.version_order import canonical_version
from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.modules_reader import ModulesReader
from pypi_assets.lookup.owner_ranking import (
    Found,
    OwnerCandidate,
    OwnerReasons,
    is_declared,
    is_junk_root,
    name_matches,
    ranked,
)
from pypi_assets.lookup.providers import Provider, is_provided, provider_of_stub, providers, providers_of_releases
from pypi_assets.lookup.reader import require_text

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog


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


class Evidence(Protocol):
    """Where the candidates come from: published versions, or the catalog at a serial."""

    serial: int

    def prepare(self, modules: Collection[str]) -> None:
        """Is called with all modules that may be looked up, once."""
        ...

    def is_known(self, module: str) -> bool: ...

    def providers(self, module: str) -> list[Provider]: ...

    def stubs(self, module: str, projects: Iterable[str]) -> list[Provider]:
        """Those of the projects (normalized) whose stubs describe the module."""
        ...

    def overviews(self, projects: Collection[str]) -> Mapping[str, Overview]: ...

    def dependents(self, projects: Collection[str]) -> Mapping[str, int]: ...


class TooManyCandidatesError(ExpectedError):
    """The imports of a batch have more candidates than one answer may have."""


class SerialsDifferError(LeveldbError):
    """Two datasets that one answer needs are of different serials."""


def owners(
    modules: ModulesReader, depgraph: DepgraphReader, names: Iterable[str], most: int | None = None
) -> list[ImportOwners]:
    """The owners of each of the imports `names`, in their order, from the versions that are read now.

    All candidates are ranked; with `most`, no more of each are returned. Raises SerialsDifferError where the newest
    versions of the two datasets are of different serials.

    >>> [found] = owners(modules, depgraph, ["yaml"])
    >>> found["candidates"][0]["project"]
    'PyYAML'
    """
    wanted = [require_text("owners", name) for name in names]
    _, found = answered_by_both(modules, depgraph, lambda evidence: owners_by(evidence, wanted, most))
    return found


def answered_by_both(
    modules: ModulesReader, depgraph: DepgraphReader, answer: Callable[["Published"], Answered]
) -> tuple[int, Answered]:
    """What `answer` returns of the versions that are read now, and their serial. It is called again where the readers
    moved on meanwhile. Raises SerialsDifferError.
    """
    for _ in range(2):
        if modules.serial != depgraph.serial:
            (modules if modules.serial < depgraph.serial else depgraph).refresh()
        if modules.serial != depgraph.serial:
            continue
        expected = modules.serial

        def of_modules(db: Database, expected: int = expected) -> tuple[int, Answered]:
            return depgraph.query(lambda depgraph_db: answer(Published(expected, db, depgraph_db)))

        serial, (of_depgraph, found) = modules.query(of_modules)
        if serial == of_depgraph == expected:
            return serial, found
    raise SerialsDifferError(
        f"modules is of serial {modules.serial}, and depgraph of serial {depgraph.serial}: `pypi-assets leveldb update`"
        " brings both to the same"
    )


def owners_by(evidence: Evidence, names: Iterable[str], most: int | None = None) -> list[ImportOwners]:
    """The owners of each of the imports `names`, in their order, by this evidence.

    Modules that several of them lead to are looked up once. Raises TooManyCandidatesError for what several have
    together: of a single import, all candidates are an answer.
    """
    wanted = list(names)
    longest = {name: list(prefixes(name)) for name in wanted}
    evidence.prepare({module for found in longest.values() for module in found})
    count = Counter(wanted)
    total = 0
    known: dict[str, str | None] = {}
    candidates: dict[str, list[OwnerCandidate]] = {}
    for name, modules in longest.items():
        module = None
        for one in modules:
            if one not in candidates and evidence.is_known(one):
                candidates[one] = list(islice(_candidates(evidence, one), most))
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


def _candidates(evidence: Evidence, module: str) -> list[OwnerCandidate]:
    provided = evidence.providers(module)
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
    overviews, dependents = evidence.overviews(projects), evidence.dependents(projects)
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


class Published:
    """Evidence of published versions of `modules` and `depgraph` that are of the same serial. A candidate costs at most
    four reads: its group, its versions, its overview and the count of its dependents."""

    def __init__(self, serial: int, modules: Database, depgraph: Database) -> None:
        self.serial, self.modules, self.depgraph = serial, modules, depgraph
        self._overviews: dict[str, Overview] = {}
        self._dependents: dict[str, int] = {}

    def prepare(self, modules: Collection[str]) -> None:
        """Nothing is to be read ahead."""

    def is_known(self, module: str) -> bool:
        return is_provided(self.modules, module)

    def providers(self, module: str) -> list[Provider]:
        return list(providers(self.modules, module))

    def stubs(self, module: str, projects: Iterable[str]) -> list[Provider]:
        found = (provider_of_stub(self.modules, module, project) for project in sorted(projects))
        return [one for one in found if one is not None]

    def overviews(self, projects: Collection[str]) -> Mapping[str, Overview]:
        for project in projects:
            if project not in self._overviews:
                record_key = provided_names.overview_key(project)
                value = self.modules.get(record_key, verify_checksums=True)
                if value is None:
                    raise LeveldbDamagedError(f"{record_key!r} is not there, and the project provides a module")
                self._overviews[project] = decode_overview(value)
        return self._overviews

    def dependents(self, projects: Collection[str]) -> Mapping[str, int]:
        for project in projects:
            if project not in self._dependents:
                value = self.depgraph.get(dependents_count_key(project), verify_checksums=True)
                self._dependents[project] = int(value or 0)
        return self._dependents


def owners_at(catalog: "Catalog", serial: int, names: Iterable[str], most: int | None = None) -> list[ImportOwners]:
    """The owners of each of the imports `names` at `serial`, which the catalog answers for (`answerable_serial`).

    A candidate costs by the count of its files. `pinned_answer` gives the epoch that belongs to the answer.
    """
    return owners_by(_Stored(catalog, serial), names, most)


class _Stored:
    """Evidence of the catalog at a serial. What was read once is kept for the other names of the batch."""

    def __init__(self, catalog: "Catalog", serial: int) -> None:
        self.serial, self._catalog = serial, catalog
        self._lists: Mapping[str, Collection[int]] = {}
        self._providers: dict[str, list[Provider]] = {}
        self._overviews: dict[str, Overview] = {}
        self._dependents: dict[str, int] = {}
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def prepare(self, modules: Collection[str]) -> None:
        from pypi_assets.catalog.reports.owner_evidence import lists_with_modules  # the database takes long to load

        with self._catalog.read() as connection:
            self._lists = lists_with_modules(connection, modules)

    def is_known(self, module: str) -> bool:
        return bool(self.providers(module))

    def providers(self, module: str) -> list[Provider]:
        from pypi_assets.catalog.publications.dump_rows import providing_releases

        if module not in self._providers:
            found = providing_releases(self._catalog, self.serial, module, lists=self._lists[module])
            self._providers[module] = list(providers_of_releases(module, found))
        return self._providers[module]

    def stubs(self, module: str, projects: Iterable[str]) -> list[Provider]:
        releases = (
            (project, str(row["project"]), str(row["version"]))
            for project, rows in self._rows_of(set(projects)).items()
            for row in rows
            if row["modules"] is not None and module in row["stubs"]
        )
        return list(providers_of_releases(module, releases))

    def overviews(self, projects: Collection[str]) -> Mapping[str, Overview]:
        from pypi_assets.catalog.reports.owner_evidence import live_files_of, rows_of_files

        files: defaultdict[str, dict[str, list[Any]]] = defaultdict(dict)
        of_newest: list[int] = []
        live = defaultdict(list)
        for one in live_files_of(self._catalog, self.serial, set(projects) - self._overviews.keys()):
            live[one.normalized].append(one)
            marks = {"yanked": True} if one.yanked else {}
            if one.is_rejected:
                marks["rejected"] = True
            files[one.normalized][one.filename] = [one.version, None, "", one.live_since, marks]
        for found in live.values():
            counted = accepted_or_all(found, attrgetter("is_rejected"))
            newest = newest_release({(one.version, one.yanked) for one in counted})
            of_newest += [one.distribution_id for one in counted if canonical_version(one.version) == newest]
        for row in rows_of_files(self._catalog, self.serial, of_newest):
            files[row["normalized"]][row["filename"]][4] = marks_of(row)
        self._overviews.update((project, overview_of(entries)) for project, entries in files.items())
        return self._overviews

    def dependents(self, projects: Collection[str]) -> Mapping[str, int]:
        from pypi_assets.catalog.reports.owner_evidence import count_dependents

        wanted = set(projects) - self._dependents.keys()
        self._dependents |= dict.fromkeys(wanted, 0) | count_dependents(self._catalog, self.serial, wanted)
        return self._dependents

    def _rows_of(self, projects: set[str]) -> dict[str, list[dict[str, Any]]]:
        """The rows of these projects, as dumps have them, each project read once."""
        from pypi_assets.catalog.reports.owner_evidence import rows_of_projects

        wanted = projects - self._rows.keys()
        self._rows |= {project: [] for project in wanted}
        for row in rows_of_projects(self._catalog, self.serial, wanted):
            self._rows[row["normalized"]].append(row)
        return {project: self._rows[project] for project in sorted(projects)}
