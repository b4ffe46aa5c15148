"""A catalog that follows an index in this process, whose changelog can be unavailable."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from hypothesis import strategies as st
from packaging.utils import canonicalize_name
from sqlalchemy import text

from pypi_assets.catalog.database import Catalog, CatalogError, open_catalog
from pypi_assets.catalog.ledger.range_ledger import complete_serial, ledger
from pypi_assets.catalog.reports.catalog_status import catalog_status
from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets.catalog.reports.moments import answerable_serial
from pypi_assets.catalog.tables import metadata
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.listers import AUTO
from pypi_assets.index.errors import PackageIndexError, RefusedError, TransientError
from pypi_assets.index.models import ChangelogEvent, ListedProject
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.crawl.model_steps import ENDINGS, file_of
from pypi_assets_tests.model_index import ModelIndex, ModelReaders

operations = st.one_of(
    st.builds(
        lambda project, version, ending: ("add", project, version, file_of(project, version, ending)),
        st.sampled_from(["Alpha", "beta.pkg", "gamma"]),
        st.sampled_from(["1.0", "2.0", "3.0"]),
        st.sampled_from(ENDINGS),
    ),
    st.builds(
        lambda project, version, ending: ("remove-file", project, version, file_of(project, version, ending)),
        st.sampled_from(["Alpha", "beta.pkg", "gamma"]),
        st.sampled_from(["1.0", "2.0", "3.0"]),
        st.sampled_from(["-py3-none-any.whl", ".tar.gz"]),
    ),
    st.tuples(
        st.sampled_from(["remove-release", "yank", "unyank", "quarantine-release", "unquarantine-release"]),
        st.sampled_from(["Alpha", "beta.pkg", "gamma"]),
        st.sampled_from(["1.0", "2.0", "3.0"]),
        st.none(),
    ),
    st.tuples(
        st.sampled_from(["remove-project", "quarantine", "unquarantine", "archive", "unarchive"]),
        st.sampled_from(["Alpha", "beta.pkg", "gamma"]),
        st.none(),
        st.none(),
    ),
    st.tuples(
        st.sampled_from(
            ["event:add Owner somebody", "event:rename from Other", "event:docupdate", "event:an unknown action"]
        ),
        st.sampled_from(["Alpha", "beta.pkg", "gamma"]),
        st.none(),
        st.none(),
    ),
)
"""What happens on an index: (kind, project, version, filename), for `SilentIndex.happen`."""

REFUSED = RefusedError("no changelog is served here", "https://index.example.org/pypi")
BUSY = TransientError("HTTP 503", "https://index.example.org/pypi")


@dataclass
class SilentIndex(ModelIndex):
    """An index that raises `trouble` for its changelog and serves `listing` as its list, unless these are None."""

    trouble: PackageIndexError | None = None
    listing: tuple[int | None, list[ListedProject]] | None = None

    @contextmanager
    def iter_listing(self, *, newer_than: int | None = None) -> Iterator[tuple[int | None, Iterator[ListedProject]]]:
        with super().iter_listing() as (serial, listed):
            yield (serial, listed) if self.listing is None else (self.listing[0], iter(self.listing[1]))

    def last_serial(self) -> int:
        self._answer_trouble()
        return super().last_serial()

    def changelog(self, since: int, until: int) -> Iterator[list[ChangelogEvent]]:
        self._answer_trouble()
        yield from super().changelog(since, until)

    def _answer_trouble(self) -> None:
        if self.trouble is not None:
            raise self.trouble

    def happen(self, kind: str, project: str, version: str | None = None, filename: str | None = None) -> None:
        if kind.startswith("event:"):
            self.record_event(project, version, kind.removeprefix("event:"))
        else:
            self.do(kind, project, version, filename)


@dataclass
class Follower:
    """A catalog that follows an index with one lister. `notified` holds the notices for operators."""

    index: SilentIndex
    catalog: Catalog
    lister: str = AUTO
    now: float = 1_000_000.0
    notified: list[str] = field(default_factory=list)

    @property
    def crawler(self) -> Crawler:
        def sleep(seconds: float) -> None:
            self.now += seconds

        return Crawler(
            index=self.index,  # type: ignore[arg-type]
            catalog=replace(self.catalog, clock=lambda: self.now),
            storage=open_storage("memory:///"),
            readers=ModelReaders(),  # type: ignore[arg-type]
            connections=1,
            lister=self.lister,
            notify=self.notified.append,
            retry_deadline_s=3_600.0,
            sleep=sleep,
        )

    def live(self, serial: int | None = None) -> frozenset[tuple[str, bool]]:
        return frozenset((file.filename, file.yanked) for file in live_files(self.catalog, serial))

    def data(self) -> set[tuple[Any, ...]]:
        """Return the facts of each live file, without the serial since which it is live."""
        return {
            (
                canonicalize_name(file.project),
                file.version,
                file.filename,
                file.kind,
                file.sha256,
                file.yanked,
                file.outcome,
                file.url,
            )
            for file in live_files(self.catalog)
        }

    @property
    def complete(self) -> int:
        with self.catalog.read() as connection:
            return complete_serial(connection)

    def listers(self) -> list[str | None]:
        with self.catalog.read() as connection:
            return [entry.lister for entry in ledger(connection)]

    def answerable(self, serial: int) -> bool:
        try:
            return answerable_serial(self.catalog, serial) == serial
        except CatalogError:
            return False

    def require_exact(self) -> None:
        """Check that the files at each answerable serial equal those that the index showed."""
        status = catalog_status(self.catalog)
        assert status.ledger_faults == ()
        for serial in range(self.complete + 1):
            if self.answerable(serial):
                assert self.live(serial) == self.index.shown[serial], f"at serial {serial}"


def empty_catalog(catalog: Catalog) -> None:
    """Delete all rows, which is faster than creating the tables again."""
    with catalog.write() as connection:
        if catalog.is_sqlite:
            for table in reversed(metadata.sorted_tables):
                connection.exec_driver_sql(f"DELETE FROM {table.name}")
        else:
            names = ", ".join(table.name for table in metadata.sorted_tables)
            connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY CASCADE"))


@cache
def _opened(lister: str) -> Catalog:
    folder = tempfile.mkdtemp(prefix="pypi-assets-listers-")
    atexit.register(shutil.rmtree, folder)
    catalog = open_catalog(f"sqlite:///{folder}/{lister}.sqlite")
    atexit.register(catalog.close)
    return catalog


def follower(lister: str, trouble: PackageIndexError | None = None) -> Follower:
    """Return a follower with an empty catalog."""
    empty_catalog(_opened(lister))
    return Follower(SilentIndex(trouble=trouble), _opened(lister), lister)


def wheel(project: str, version: str) -> str:
    return f"{project}-{version}-py3-none-any.whl"


def add(index: SilentIndex, project: str, version: str = "1.0") -> str:
    index.do("add", project, version, wheel(project, version))
    return wheel(project, version)
