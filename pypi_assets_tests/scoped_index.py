"""An in-process index whose files are lists of requirements, and a catalog that follows scopes of it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sqlalchemy import select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.scopes.stored_scopes import Scope, add_ruleset, require_scope
from pypi_assets.catalog.tables import distribution_data, distributions, projects, scope_projects, visit_queue
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.incremental_crawl import RangeResult, crawl_incremental
from pypi_assets.crawl.scope_crawl import ScopeResult, run_scope, start_scope
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.reader_pool import FinishedReading
from pypi_assets.distributions.record import DistributionKind, DistributionRecord
from pypi_assets.index.errors import TransientError
from pypi_assets.index.models import ListedProject
from pypi_assets.scopes.plan import ScopePlan
from pypi_assets.scopes.root_files import named_roots
from pypi_assets_tests.crawl.followers import Follower, SilentIndex
from pypi_assets_tests.crawl.model_following import draining_in_place
from pypi_assets_tests.crawl.model_steps import file_of
from pypi_assets_tests.model_index import ModelReaders

WHEEL, SDIST = "-py3-none-any.whl", ".tar.gz"


@dataclass
class ScopedIndex(SilentIndex):
    """An index of files that contain only requirements.

    `requirements` has the requirements of each file, by filename. `unreadable` files cannot be downloaded for now.
    Every page request is recorded in `visited`. Requesting the project list is an error unless `is_listed`.
    """

    requirements: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unreadable: set[str] = field(default_factory=set)
    visited: list[str] = field(default_factory=list)
    is_listed: bool = False
    has_shown_pages: bool = False

    def upload(self, project: str, version: str, *requires: str, ending: str = WHEEL) -> str:
        """Upload a file with these requirements, and return its filename."""
        filename = file_of(project, version, ending)
        self.requirements[filename] = requires
        assert self.do("add", project, version, filename)
        return filename

    @contextmanager
    def iter_listing(self, *, newer_than: int | None = None) -> Iterator[tuple[int | None, Iterator[ListedProject]]]:
        is_first_answer = not self.has_shown_pages  # until then, only the list shows that the index responds
        assert self.is_listed or is_first_answer, "the list of projects was requested"
        with super().iter_listing() as listing:
            yield listing

    def project_page(self, project: str, *, etag: str | None = None):  # type: ignore[no-untyped-def] # like the overridden method
        self.visited.append(project)
        page = super().project_page(project, etag=etag)
        self.has_shown_pages = True
        return page

    def _fetch(self, url: str) -> None:
        if url.rpartition("/")[2] in self.unreadable:
            raise TransientError("HTTP 503", url)
        super()._fetch(url)


@dataclass
class RequiringReaders(ModelReaders):
    """Readers that derive a file's content from its requirements."""

    requirements: Mapping[str, tuple[str, ...]]

    def read(
        self,
        _source: object,
        filename: str,
        *,
        project: str | None,
        kind: DistributionKind | None = None,
        extract_first: bool = False,
    ) -> FinishedReading:
        parts = parse_filename(filename, project)
        requires = self.requirements.get(filename, ())
        record = DistributionRecord(
            filename, parts.kind, parts.project, parts.version, requires_dist=requires, modules=(filename,)
        )
        return FinishedReading(record, None)


@dataclass
class ScopedFollower(Follower):
    """A catalog that follows scopes of `index`."""

    index: ScopedIndex

    @property
    def crawler(self) -> Crawler:
        readers = RequiringReaders(self.index.requirements)
        return replace(super().crawler, readers=readers)  # type: ignore[arg-type]

    def create(self, *roots: str, name: str = "mine", **options: object) -> Scope:
        plan = ScopePlan(name, named_roots(roots).extras, **options)  # type: ignore[arg-type]
        return start_scope(self.crawler, plan)

    def run(self, name: str = "mine") -> ScopeResult:
        with draining_in_place():
            return run_scope(self.crawler, name)

    def start(self, *roots: str, name: str = "mine", **options: object) -> ScopeResult:
        """Create a scope and run it."""
        self.create(*roots, name=name, **options)
        return self.run(name)

    def crawl(self) -> list[RangeResult]:
        """Follow the index up to its last serial."""
        with draining_in_place():
            return crawl_incremental(self.crawler)

    def scope(self, name: str = "mine") -> Scope:
        with self.catalog.read() as connection:
            return require_scope(connection, name)

    def set_rules(self, rules: str, name: str = "mine") -> None:
        scope = self.scope(name)
        with self.crawler.catalog.write() as connection:
            add_ruleset(connection, scope, rules, self.now)

    def depths(self, name: str = "mine") -> dict[str, int]:
        """Return the depth of each project in a scope."""
        return {project: depth for project, (depth, is_beyond, *_) in self.members(name).items() if not is_beyond}

    def members(self, name: str = "mine") -> dict[str, tuple[int, bool, int, bool]]:
        """Return the stored rows of a scope by project: (depth, is beyond the scope, first serial, is late)."""
        rows = scope_projects.c
        query = select(projects.c.normalized, rows.depth, rows.is_beyond, rows.first_serial, rows.is_late)
        query = query.join(scope_projects, rows.project_id == projects.c.id).where(rows.scope_id == self.scope(name).id)
        with self.catalog.read() as connection:
            return {project: tuple(found) for project, *found in connection.execute(query)}  # type: ignore[misc]

    def outcomes(self) -> dict[str, str]:
        """Return the outcome of reading each file."""
        query = select(distributions.c.filename, distribution_data.c.outcome)
        query = query.join(distribution_data, distribution_data.c.distribution_id == distributions.c.id)
        with self.catalog.read() as connection:
            return {filename: outcome for filename, outcome in connection.execute(query)}

    def queued(self, workload: str) -> set[str]:
        """Return the projects that a workload has yet to visit."""
        rows = visit_queue.c
        query = select(projects.c.normalized).join(visit_queue, rows.project_id == projects.c.id)
        with self.catalog.read() as connection:
            return set(connection.scalars(query.where(rows.workload == workload, rows.state == "todo")))

    def names(self, serial: int | None = None) -> set[str]:
        """Return the names of the live files."""
        return {name for name, _ in self.live(serial)}


def scoped(catalog: Catalog) -> ScopedFollower:
    return ScopedFollower(ScopedIndex(), catalog)


def follow_scope(catalog: Catalog) -> None:
    """Follow a scope of one project, which a later release brings another project into."""
    scoped = ScopedFollower(ScopedIndex(), catalog)
    scoped.index.upload("base", "1.0")
    scoped.index.upload("root", "1.0")
    scoped.start("root")
    scoped.index.upload("root", "2.0", "base")
    scoped.crawl()
    scoped.index.record_event("root", None, "docupdate")
    scoped.crawl()
