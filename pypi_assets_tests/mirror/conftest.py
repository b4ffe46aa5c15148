"""Fixtures for a published index with a journal, whose storage is served as static files, and its mirrors."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from pypi_assets.catalog.publications.dump_columns import DumpFormat
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.journal.publishing import write_missing
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.segment_files import read_head
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import published_versions
from pypi_assets.leveldbs.versions.leveldb_manifest import check_sizes, read_published
from pypi_assets.mirror.following import Mirror
from pypi_assets.mirror.sources import open_source
from pypi_assets.mirror.sync_plan import held_publication, read_state
from pypi_assets.storage.published import PUBLISHED
from pypi_assets.storage.root_owner import require_owner
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.journal.written import records_of
from pypi_assets_tests.mirror.static_files import StaticFiles, static_files
from pypi_assets_tests.service.published import Published, fill, published_index

DAY_S = 24 * 3600.0


@dataclass
class Origin:
    """The crawling instance and its storage as static files."""

    published: Published
    files: StaticFiles
    uploads: int = 0

    @property
    def storage(self) -> Storage:
        return self.published.storage

    def publish(self) -> int:
        """Upload a file, publish all stages, and return the serial. The new dump has another format than the first."""
        self.uploads += 1
        self.published.add("wheel", "demo", f"3.{self.uploads}", files={"demo/__init__.py": "", "demo/later.py": ""})
        self.published.catalog = replace(self.published.catalog, dump_ending=DumpFormat.ZSTD.ending)
        serial = self.published.publish()
        list(write_missing(self.published.catalog, self.storage))
        return serial


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Mirrors:
    """Mirrors in folders of `root`, which are served as well."""

    root: Path
    clock: Clock = field(default_factory=Clock)

    def storage(self, name: str) -> Storage:
        return open_storage((self.root / name / "storage").as_uri())

    def of(self, url: str, name: str = "mirror", *, verify: bool = False, grace_s: float = DAY_S) -> Mirror:
        return Mirror(
            open_source(url),
            self.storage(name),
            grace_s=grace_s,
            verify=verify,
            clock=self.clock,
            sleep=lambda _seconds: None,
        )


def begin(folder: Path, uploads: Callable[[Published], None] = fill) -> Iterator[Origin]:
    with published_index(folder) as published:
        uploads(published)
        require_owner(published.storage, published.index.url)
        published.publish_first()
        list(write_missing(published.catalog, published.storage))
        assert published.storage.root
        with static_files(published.storage.root) as files:
            yield Origin(published, files)


@pytest.fixture(scope="session")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Origin]:
    """Yield an origin whose content tests do not change. Tests that change how it is served restore it."""
    with pytest.MonkeyPatch.context() as environment:
        clear_settings(environment)
        yield from begin(tmp_path_factory.mktemp("origin"))


@pytest.fixture
def changing_origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Origin]:
    """Yield an origin that may publish more."""
    clear_settings(monkeypatch)
    yield from begin(tmp_path / "origin")


@pytest.fixture
def mirrors(tmp_path: Path) -> Mirrors:
    return Mirrors(tmp_path / "mirrors")


def contents(storage: Storage) -> dict[str, bytes]:
    """Return all published files in a storage by path."""
    omitted = ("mirror.json", "published/", "index.json", "extracts/", "published.json")
    return {file.path: storage.get(file.path) for file in storage.list() if not file.path.startswith(omitted)}


def assert_whole(storage: Storage) -> None:
    """Assert that a mirror is complete and consistent.

    All files that published.json names must exist with the hashes that it and its manifests name, and all others are
    ignored. Each journal head must have its chain.
    """
    if storage.exists(PUBLISHED):
        state = read_state(storage.get(PUBLISHED), "here")
        for root in state.roots:
            publication = held_publication(storage, root)
            assert publication is not None, root
            for file in publication.files:
                content = storage.get(file.path)
                assert (len(content), hashlib.sha256(content).hexdigest()) == (file.size, file.sha256)
        assert {stream: read_head(storage, stream) for stream in state.heads} == state.heads
    for dataset in DATASETS:
        for version in published_versions(storage, dataset):
            check_sizes(storage, read_published(storage, dataset, version))
    if heads := [stream for stream in JournalStream if read_head(storage, stream) is not None]:
        assert records_of(Journal(storage), streams=heads)
