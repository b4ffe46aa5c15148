"""Verifies a published version: its files, its record about itself, and optionally a rebuild from its inputs."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from typing import TypeVar

from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.dump_manifest import DumpManifest, file_path, read_manifest
from pypi_assets.leveldbs.build.builder import Builder
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.registry import require_dataset
from pypi_assets.leveldbs.format.leveldb_binding import Database, require_binding
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets.leveldbs.format.records import META_PREFIX, ContentHash, read_meta
from pypi_assets.leveldbs.versions.leveldb_manifest import PublishedVersion, check_sizes, read_published
from pypi_assets.leveldbs.versions.private_copy import copy_published, private_folder, private_parent
from pypi_assets.leveldbs.versions.publish import apply_dumps
from pypi_assets.storage.store import Storage

CountLog = Callable[[str], Callable[[int], object]]
"""Receives a description of what is counted, and returns a function that is called with the count from time to time."""
_REPORT_EVERY = 100_000
_T = TypeVar("_T")


def _unheard(_: str) -> Callable[[int], object]:
    return int


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification. `records` were read. `problems` is empty if the version is valid."""

    dataset: str
    version: int
    records: int
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(
    dataset_name: str,
    version: int,
    *,
    storage: Storage,
    deep: bool = False,
    work_dir: Path | None = None,
    cached: bool = False,
    progress: CountLog = _unheard,
) -> Verification:
    """Read every record of a version, and compare counts and content hash with its own record and its manifest.

    With `deep`, the version is also rebuilt from its input list and compared record by record, and the files beside its
    LevelDB are compared with the records. `progress` returns a
    function that is called with the count so far.

    The work is done within the storage's folder, or below `work_dir` for a remote store. With `cached`, files of a
    remote store come from the cache if they are there. Then the contents of the cached files are checked, and only the
    sizes of the files in the store. Raises MissingBindingError.
    """
    require_binding()  # a missing binding does not mean that the version is corrupt
    dataset = require_dataset(dataset_name)
    problems: list[str] = []
    records = 0
    try:
        published = read_published(storage, dataset.name, version)
        with private_folder(private_parent(storage, work_dir)) as folder:
            check_sizes(storage, published)
            copy_published(storage, published, folder / "published", work_dir if cached else None)
            with open_leveldb(folder / "published", published.name) as db:
                records = _check_contents(db, dataset, published, problems, progress)
                if deep:
                    _compare_with_rebuilt(db, dataset, published, storage, folder / "rebuilt", problems, progress)
                    _compare_side_files(db, dataset, published, folder, problems)
    except (LeveldbError, DumpDamagedError) as error:
        problems.append(str(error))
    return Verification(dataset.name, version, records, tuple(problems))


def _check_contents(
    db: Database, dataset: Dataset, published: PublishedVersion, problems: list[str], progress: CountLog
) -> int:
    manifest = published.manifest
    meta = read_meta(db, published.name, dataset=dataset.name, known_format=dataset.format)
    counts: Counter[str] = Counter()
    content_hash = ContentHash()
    with db.iterator(verify_checksums=True) as records:
        for key, value in _with_progress(records, progress(f"{published.name}: records read")):
            if not key.startswith(META_PREFIX):
                counts[chr(key[0])] += 1
                content_hash.add(key, value)
    for what, inside, promised, counted in (
        ("serial", meta.serial, manifest.serial, published.inputs.serial),
        ("counts", meta.counts, manifest.counts, dict(counts)),
        ("content hash", meta.content_hash, manifest.content_hash, content_hash.hex),
    ):
        if not inside == promised == counted:
            problems.append(f"{published.name}: {what} differ: {inside} inside, {promised} expected, {counted} found")
    return counts.total()


def _compare_with_rebuilt(
    db: Database,
    dataset: Dataset,
    published: PublishedVersion,
    storage: Storage,
    path: Path,
    problems: list[str],
    progress: CountLog,
) -> None:
    with open_leveldb(path, f"{published.name}, rebuilt", create=True) as rebuilt:
        builder = Builder(rebuilt, dataset, flushed=progress(f"{published.name}: rows of its rebuild"))
        apply_dumps(builder, storage, _inputs(storage, published))
        builder.finish(published.manifest.serial)
        with db.iterator() as ours, rebuilt.iterator() as theirs:
            pairs = zip_longest(ours, theirs, fillvalue=(b"", b""))
            for left, right in _with_progress(pairs, progress(f"{published.name}: records compared")):
                if left != right:
                    problems.append(f"{published.name} differs from its rebuild: {left!r:.200} is {right!r:.200} there")
                    return


def _compare_side_files(
    db: Database, dataset: Dataset, published: PublishedVersion, folder: Path, problems: list[str]
) -> None:
    """Compare the files beside the LevelDB with its records."""
    if dataset.side_files is not None:
        working = folder / "expected"
        working.mkdir()
        problem = dataset.side_files.problem(db, folder / "published", working)
        if problem is not None:
            problems.append(f"{published.name}: {problem}")


def _with_progress(items: Iterable[_T], progress: Callable[[int], object]) -> Iterator[_T]:
    """Yield the items, and call `progress` with their number so far."""
    for count, item in enumerate(items):
        if count % _REPORT_EVERY == 0:
            progress(count)
        yield item


def _inputs(storage: Storage, published: PublishedVersion) -> list[DumpManifest]:
    """Return the dumps that the input list names. Raises DumpDamagedError if it does not match their manifests."""
    directories = dict.fromkeys(PurePosixPath(path).parent.name for path in published.inputs.inputs)
    manifests = [read_manifest(storage, directory) for directory in directories]
    if published.inputs.inputs != tuple(
        file_path(dump.directory, file.name) for dump in manifests for file in dump.files
    ):
        raise DumpDamagedError(f"the input list of {published.name} does not name the files of its dumps")
    return manifests
