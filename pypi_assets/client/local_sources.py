"""Answers from files, without a service: newest answers from LevelDB versions, and earlier answers from a catalog.

The first question that needs a dataset opens it, and downloads it from a remote storage.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pypi_assets.client.change_iterator import MOST_PER_BATCH, ChangesBatch, Filters
from pypi_assets.client.results import ResultPage
from pypi_assets.errors import FIRST_COMMANDS
from pypi_assets.leveldbs.format.leveldb_errors import NoVersionError
from pypi_assets.lookup.published_sets import UNREADABLE, OpenSet, PublishedSets
from pypi_assets.questions.paging import CursorError, PageCursor, digest_of, page_of, parse_cursor
from pypi_assets.questions.published_snapshot import PublishedSnapshot
from pypi_assets.questions.question import ParameterError, Parameters, Question
from pypi_assets.questions.snapshot import After, Found, OtherSnapshotError, Snapshot
from pypi_assets.storage.store import Storage

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog
    from pypi_assets.journal.tailing import Tail
    from pypi_assets.lookup.project_answers import ProjectFacts


@dataclass(slots=True)
class PublishedSource:
    """The newest published set of a storage. Later publications do not change it. `open_catalog` opens a home's
    catalog.
    """

    storage: Storage
    cache_dir: Path | None = None
    open_catalog: "Callable[[], Catalog] | None" = None
    _sets: PublishedSets = field(init=False, repr=False)
    _present: OpenSet | None = field(default=None, repr=False)
    _named: dict[str, OpenSet] = field(default_factory=dict, repr=False)
    _catalog: "Catalog | None" = field(default=None, repr=False)
    _tail: "Tail | None" = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self._sets = PublishedSets(self.storage, self.cache_dir)

    def page(
        self, question: Question[Any], asked: Parameters, page_size: int | None, cursor: str | None
    ) -> ResultPage[Mapping[str, Any]]:
        """Return one page. Raises CursorError, OtherSnapshotError, NoVersionError and StorageError."""
        if self.open_catalog is not None and question.needs_catalog(asked):
            begun = _parsed(question, asked, cursor)
            return self._at(None if begun is None else begun.serial).page(question, asked, page_size, cursor)
        given = _parsed(question, asked, cursor)
        while True:
            datasets = self._newest() if given is None else self._set_of(given)
            try:
                snapshot = PublishedSnapshot(datasets.reader, datasets.opened, partial(self._facts, datasets.serial))
                found = question.answer(snapshot, asked, _after(given))
                return _page(question, asked, snapshot, found, page_size, given, datasets.id)
            except UNREADABLE:
                if given is not None or not self._sets.is_skipped(datasets.published):
                    raise
                self._present = None

    def at(self, moment: str) -> "CatalogSource":
        """Return the catalog at a moment. Raises OtherSnapshotError for a storage without a catalog, and
        CatalogError.
        """
        from pypi_assets.catalog.reports.moments import MOMENT_ACCEPTS, NoMomentError, parse_moment

        try:
            return self._at(parse_moment(moment))
        except NoMomentError:
            raise ParameterError("at", moment, MOMENT_ACCEPTS) from None

    def changes(self, since: str | None, filters: Filters) -> ChangesBatch:
        """Return the changes after a position. Raises ParameterError, SinceError, NoJournalError and StorageError."""
        import orjson

        from pypi_assets.catalog.database import CatalogError
        from pypi_assets.journal.change_types import with_time
        from pypi_assets.journal.filters import FilterError, RecordFilter
        from pypi_assets.journal.record_reader import Journal
        from pypi_assets.journal.tailing import Tail, beginning, cursor_since

        try:
            wanted = RecordFilter.of_fields(filters)
        except FilterError as error:
            raise ParameterError(error.field, filters[error.field], error.accepts) from None
        if self._tail is None:
            self._tail = Tail(Journal(self.storage))
        journal = self._tail.journal
        if since is None:
            after = beginning(journal, wanted)
        else:
            catalog = None
            with suppress(CatalogError):
                catalog = self._opened_catalog()
            after = cursor_since(since, journal, catalog, wanted)
        found = self._tail.batch(after, wanted, MOST_PER_BATCH)
        changes = [orjson.loads(with_time(line)) for _, line in found.lines]
        return ChangesBatch(changes, str(found.cursor), found.through, found.is_last)

    def close(self) -> None:
        """Close the readers and the catalog."""
        for opened in (self._present, *self._named.values()):
            if opened is not None:
                opened.close()
        self._present = None
        self._named.clear()
        if self._catalog is not None:
            self._catalog.close()
            self._catalog = None

    def _at(self, moment: Any) -> "CatalogSource":
        from pypi_assets.catalog.reports.moments import serial_of

        catalog = self._opened_catalog()
        if catalog is None:
            raise OtherSnapshotError(
                f"{self.storage.url} only has the newest answers: for earlier serials, connect to a service or to a"
                " home, which has a catalog"
            )
        return CatalogSource(self, catalog, serial_of(catalog, moment), is_newest=moment is None)

    def _opened_catalog(self) -> "Catalog | None":
        """Return the catalog of the home, or None for a storage without one. Raises CatalogError."""
        if self._catalog is None and self.open_catalog is not None:
            self._catalog = self.open_catalog()
        return self._catalog

    def _facts(self, serial: int, project: str) -> "ProjectFacts | None":
        """Return the facts about a project that only the catalog has, or None without a catalog."""
        if self.open_catalog is None:  # so that the database is not imported
            return None
        from pypi_assets.catalog.database import CatalogError
        from pypi_assets.lookup.project_answers import known_facts

        try:
            catalog = self._opened_catalog()
        except CatalogError:
            return None
        return None if catalog is None else known_facts(catalog, serial, project)

    def _newest(self) -> OpenSet:
        if self._present is None:
            published = self._sets.newest()
            if published is None:
                skipped = "".join(f"; {reason}" for reason in self._sets.skipped.values())
                raise NoVersionError(
                    f"nothing that can be read is published in {self.storage.url}: {FIRST_COMMANDS}{skipped}"
                )
            self._present = OpenSet(self._sets, published)
        return self._present

    def _set_of(self, cursor: PageCursor) -> OpenSet:
        """Return the set from which the first page of a list came."""
        if self._present is not None and self._present.id == cursor.set:
            return self._present
        if cursor.set not in self._named:
            published = self._sets.named(cursor.set)
            if published is None:
                raise CursorError("the datasets of this cursor are not published any more: begin again")
            self._named[cursor.set] = OpenSet(self._sets, published)
        return self._named[cursor.set]


@dataclass(frozen=True, slots=True)
class CatalogSource:
    """The catalog of a home at an exact serial. Closing the home closes it."""

    home: PublishedSource
    catalog: "Catalog"
    serial: int
    is_newest: bool = False

    def page(
        self, question: Question[Any], asked: Parameters, page_size: int | None, cursor: str | None
    ) -> ResultPage[Mapping[str, Any]]:
        """Return one page. Raises CursorError, OtherSnapshotError and CatalogError."""
        from pypi_assets.catalog.reports.moments import pinned_answer
        from pypi_assets.questions.catalog_snapshot import CatalogSnapshot

        snapshot = CatalogSnapshot(self.catalog, self.serial, is_newest=self.is_newest)
        given = _parsed(question, asked, cursor)
        found, epoch = pinned_answer(
            self.catalog, self.serial, partial(question.answer, snapshot, asked, _after(given))
        )
        named = f"{self.serial}.{epoch}"
        if given is not None and given.set != named:
            raise CursorError("the cursor is of another serial or epoch: begin again")
        return _page(question, asked, snapshot, found, page_size, given, named, epoch)

    def at(self, moment: str) -> "CatalogSource":
        """Return the catalog at another moment."""
        return self.home.at(moment)

    def changes(self, since: str | None, filters: Filters) -> ChangesBatch:
        """Return the changes after a position."""
        return self.home.changes(since, filters)

    def close(self) -> None:
        """Close the home."""
        self.home.close()


def _parsed(question: Question[Any], asked: Parameters, cursor: str | None) -> PageCursor | None:
    return None if cursor is None else parse_cursor(cursor, question, asked)


def _after(cursor: PageCursor | None) -> After:
    return None if cursor is None else tuple(cursor.after)


def _page(
    question: Question[Any],
    asked: Parameters,
    snapshot: Snapshot,
    found: Found[Any],
    page_size: int | None,
    cursor: PageCursor | None,
    named: str,
    epoch: int | None = None,
) -> ResultPage[Mapping[str, Any]]:
    """Return the page of an answer. A question without pages, or a search of the whole index, has a single page."""
    key, digest, end = question.sort_key, digest_of(question, asked), None
    results: Iterable[Mapping[str, Any]] = found.results
    close: Callable[[], None] = getattr(found.results, "close", lambda: None)
    if question.long_by(asked):
        key = None  # results are ordered by distance, which no cursor names
    if key is not None:
        results, end = page_of(question, found, _after(cursor), page_size)
    is_empty = not results and cursor is None

    def cursor_after(result: Mapping[str, Any]) -> str:
        return PageCursor(named, digest, list(key(result)) if key else []).text()

    return ResultPage(
        found.serial,
        epoch,
        found.followed_projects,
        results,
        None if end is None else PageCursor(named, digest, list(end)).text(),
        tuple(found.kind.__annotations__),
        hints=lambda: tuple(map(str, question.hints(snapshot, asked))) if is_empty else (),
        cursor_after=None if key is None else cursor_after,
        close=close,
    )
