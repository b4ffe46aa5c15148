"""Followers of a small index, in a thread or a separate process, and checks for their results."""

import json
import os
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import RangeState, faulty_ranges, ledger
from pypi_assets.catalog.tables import distributions, read_attempts
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.following.follower import Builds, FollowerPace, follow
from pypi_assets.journal.record_reader import Journal
from pypi_assets.leveldbs.build.loading import MEMORY_BYTES
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.open_leveldb import WRITE_BUFFER_BYTES
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup.latest import open_latest
from pypi_assets_tests.forked import COMMAND_LINE, ForkedProgram
from pypi_assets_tests.journal.written import records_of
from pypi_assets_tests.served_index import ServedIndex, live

PACE = FollowerPace(poll_s=0.05, leveldb_s=0.1, look_s=0.5)


def begin(index: ServedIndex, catalog: Catalog) -> None:
    """Crawl the index, dump the catalog, and build the first versions."""
    crawl_full(index.crawler(catalog))
    full_dump(catalog, index.storage, 1)
    for name in DATASETS:
        build_version(name, storage=index.storage, catalog=catalog)


@dataclass
class Following:
    """A follower in a thread. `steps` holds the lines that it has logged."""

    crawler: Crawler
    folder: Path
    stopping: threading.Event = field(default_factory=threading.Event)
    steps: list[dict[str, object]] = field(default_factory=list)
    error: Exception | None = None
    is_clean: bool | None = None

    def run(self) -> None:
        builds = Builds(self.folder / "work", WRITE_BUFFER_BYTES, MEMORY_BYTES)
        try:
            self.is_clean = follow(
                self.crawler, builds, PACE, lambda step: self.steps.append(dict(step)), self.stopping
            )
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error

    def logged(self, step: str) -> list[dict[str, object]]:
        return [one for one in self.steps if one["step"] == step]


@contextmanager
def following(crawler: Crawler, folder: Path) -> Iterator[Following]:
    """Run a follower during the block, and stop it at the end."""
    one = Following(crawler, folder)
    thread = threading.Thread(target=one.run)
    thread.start()
    try:
        yield one
    finally:
        one.stopping.set()
        thread.join(60)
    assert not thread.is_alive()


def start_process(index: ServedIndex, catalog: Catalog, folder: Path, **settings: object) -> ForkedProgram:
    """Start `pypi-assets follow` in a separate process."""
    values = {
        "HOME": folder / "home",
        "INDEX_URL": index.url,
        "DATABASE_URL": catalog.engine.url.render_as_string(hide_password=False),
        "STORAGE_URL": index.storage.url,
        "REQUEST_ATTEMPTS": 1,
        "REQUESTS_PER_SECOND": 1000,
        "MAX_CONNECTIONS": 2,
        "FOLLOW_INTERVAL_S": 0.5,
        "FOLLOW_LEVELDB_INTERVAL_S": 0.1,
        "REVISIT_SHARE": 0,
        **settings,
    }
    environment = os.environ | {f"PYPI_ASSETS_{name}": str(value) for name, value in values.items()}
    return ForkedProgram(COMMAND_LINE, "follow", env=environment, stdout=subprocess.PIPE, strict=True)


def steps_of(process: ForkedProgram) -> Iterator[dict[str, object]]:
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)


def is_answered(index: ServedIndex, *modules: str) -> bool:
    """Check whether the newest version has all these modules."""
    with open_latest("modules", index.storage) as reader:
        return all(reader.module(module).results for module in modules)


def journal_files(index: ServedIndex) -> Counter[str]:
    """Count the read records of each file in the journal."""
    records = records_of(Journal(index.storage), streams=("content",))
    return Counter(str(record["filename"]) for record in records if record["kind"] == "file read")


def assert_exact(index: ServedIndex, catalog: Catalog) -> None:
    """Check that the catalog equals the index, the ledger has no gap, and no file was read twice."""
    assert live(catalog) == index.shown()
    assert assert_sound(catalog) >= {filename for filename, _ in index.shown()}


def assert_sound(catalog: Catalog) -> set[str]:
    """Check that the ledger has no gap and no file was read twice. Return the files that were read."""
    with catalog.read() as connection:
        assert faulty_ranges(connection, only_newest=False) == []
        assert {entry.state for entry in ledger(connection)} == {RangeState.COMPLETE}
        read = select(distributions.c.filename).join(
            read_attempts, read_attempts.c.distribution_id == distributions.c.id
        )
        counts = Counter(connection.scalars(read.where(read_attempts.c.outcome == "data")))
    assert set(counts.values()) == {1}
    return set(counts)
