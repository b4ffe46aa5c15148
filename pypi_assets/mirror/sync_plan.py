"""Reads and checks the files that a source's `published.json` names. No content is trusted before its hash is compared.

Manifests are decoded by the same code as local manifests, from a storage in memory. This module checks what that code
assumes of files that this project wrote: names that stay in their folder, possible sizes, and JSON that fits into
memory.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson

from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.dump_manifest import DUMPS, file_path, read_manifest
from pypi_assets.dumps.dump_manifest import manifest_path as dump_manifest_path
from pypi_assets.journal.segment_files import (
    GRID,
    OPEN_PREFIX,
    Head,
    JournalDamagedError,
    head_path,
    read_head,
    segment_name,
)
from pypi_assets.journal.signing import CHECKPOINT, MOST_CHECKPOINT_BYTES
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError
from pypi_assets.leveldbs.versions.input_lists import MANIFEST_NAME, input_list_path, leveldb_path, read_input_list
from pypi_assets.leveldbs.versions.leveldb_manifest import PublishedVersion, read_published
from pypi_assets.mirror.sources import (
    MirrorError,
    RefusedSourceError,
    Source,
    StoredSource,
    WrongContentError,
    small_file,
)
from pypi_assets.storage.published import FORMAT, PARTS, Named
from pypi_assets.storage.store import ObjectNotFoundError, Storage, open_storage

MOST_PUBLISHED_BYTES = 1024**2
MOST_DUMP_MANIFEST_BYTES = 256 * 1024
MOST_MANIFEST_BYTES = 16 * 1024**2
MOST_DUMPS = 512
MOST_VERSIONS = 4
"""The most versions of a dataset at the same time."""
MOST_SEGMENTS = 5_000_000
MOST_FILE_BYTES = 64 * 1024**3
MOST_VALUES = 500_000
"""The most values of one manifest. A parser needs several hundred bytes of memory for each."""
_T = TypeVar("_T")
_MOST_NUMBER = 2**53
_SHA256 = re.compile(r"[0-9a-f]{64}")
_DUMP_DIRECTORY = re.compile(r"[0-9]{1,18}-[0-9]{1,18}(?:\.[0-9]{1,9})?")
_DUMP_FILE = re.compile(r"python_distribution_data[0-9]{4}(?:\.[0-9]{1,9})?\.json\.(?:gz|zst)")
_DUMP_PATH = re.compile(rf"{DUMPS}/{_DUMP_DIRECTORY.pattern}/{_DUMP_FILE.pattern}")
_VERSION_DIRECTORY = re.compile(r"[0-9]{5,18}(?:\.[0-9]{1,9})?")
_LEVELDB_FILE = re.compile(r"[0-9]{6,18}\.(?:ldb|log)|MANIFEST-[0-9]{6,18}|CURRENT")
_SIDE_FILES = {
    name: re.compile(rf"{_LEVELDB_FILE.pattern}|{_VERSION_DIRECTORY.pattern}{re.escape(dataset.side_files.suffix)}")
    for name, dataset in DATASETS.items()
    if dataset.side_files
}
"""The names of files in a version of a dataset that has files beside its LevelDB."""


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A file named by a manifest, with its size in bytes and its hash."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Publication:
    """A dump or a LevelDB version: its `files`, then the small `objects` that make it visible, in this order.

    `root` is the path of the object that published.json names. `version` is what readers of a LevelDB version open.
    """

    root: str
    files: tuple[WantedFile, ...]
    objects: tuple[tuple[str, bytes], ...]
    version: PublishedVersion | None = None


@dataclass(frozen=True, slots=True)
class PublishedState:
    """The publications that a published.json with this `content` names."""

    content: bytes
    index_url: str
    dumps_serial: int
    dumps: tuple[Named, ...]
    leveldbs: Mapping[str, tuple[Named, ...]]
    heads: Mapping[str, Head]
    checkpoints: Mapping[str, bytes]
    unknown_datasets: tuple[str, ...] = ()

    @property
    def roots(self) -> set[str]:
        """The paths of the manifests and input lists that published.json names."""
        return {
            named.path for named in (*self.dumps, *(entry for entries in self.leveldbs.values() for entry in entries))
        }


def read_state(content: bytes, name: str) -> PublishedState:
    """Return the state that a published.json describes. Errors use `name` for it. Raises RefusedSourceError."""
    fields = _object(_parsed(content, name), name)
    if fields.get("format") != FORMAT:
        raise RefusedSourceError(f"{name} has a format that this version of pypi-assets does not know: upgrade it")
    index_url = fields.get("index_url")
    if not isinstance(index_url, str) or not 0 < len(index_url) < 2_000:
        raise RefusedSourceError(f"{name} names no index: the source must write to its storage once more")
    dumps, leveldbs, heads = (_part(fields, part, name) for part in PARTS)
    named_dumps = _named(dumps.get("manifests", []), MOST_DUMPS, name)
    dumps_serial = _number(dumps.get("serial", 0), name)
    if dumps_serial != (end := max((_end_of(named.path) for named in named_dumps), default=0)):
        raise RefusedSourceError(f"{name} states dumps up to serial {dumps_serial}, but its dumps end at {end}")
    known = {dataset: leveldbs[dataset] for dataset in DATASETS if dataset in leveldbs}
    streams = {stream: _object(heads[stream], name) for stream in JournalStream if stream in heads}
    return PublishedState(
        content=content,
        index_url=index_url,
        dumps_serial=dumps_serial,
        dumps=named_dumps,
        leveldbs={dataset: _named(entries, MOST_VERSIONS, name) for dataset, entries in known.items()},
        heads={stream.value: _head(stream, of_stream, name) for stream, of_stream in streams.items()},
        checkpoints={
            stream.value: _checkpoint(of_stream[CHECKPOINT], name)
            for stream, of_stream in streams.items()
            if CHECKPOINT in of_stream
        },
        unknown_datasets=tuple(sorted(leveldbs.keys() - DATASETS.keys())),
    )


def fetch_dump(source: Source, named: Named) -> Publication:
    """Fetch the manifest of a dump and return the dump. Raises RefusedSourceError and SourceError."""
    directory = named.path.removeprefix(f"{DUMPS}/").partition("/")[0]
    if _DUMP_DIRECTORY.fullmatch(directory) is None or named.path != dump_manifest_path(directory):
        raise RefusedSourceError(f"{source.name} names {named.path!r}, which is not the path of a dump's manifest")
    content = _fetch_named(source, named, MOST_DUMP_MANIFEST_BYTES)
    staged = open_storage("memory:///")
    staged.put(named.path, content)
    name = f"{source.name}/{named.path}"
    manifest = _checked(name, lambda: read_manifest(staged, directory))
    if manifest.serials.key != directory.partition(".")[0]:
        raise RefusedSourceError(f"{name} has the serials {manifest.serials.key}, but its folder names others")
    files = tuple(
        _wanted(file_path(directory, _plain(file.name, _DUMP_FILE, name)), file.size, file.sha256, name)
        for file in manifest.files
    )
    return Publication(named.path, files, ((named.path, content),))


def fetch_version(source: Source, dataset: str, named: Named) -> Publication:
    """Fetch the input list and manifest of a LevelDB version and return it.

    Raises RefusedSourceError and SourceError.
    """
    number = named.path.rpartition("/")[2]
    if re.fullmatch(r"[0-9]{5,18}", number) is None or named.path != input_list_path(dataset, int(number)):
        raise RefusedSourceError(f"{source.name} names {named.path!r}, which is not the path of an input list")
    listed = _fetch_named(source, named, MOST_MANIFEST_BYTES)
    staged = open_storage("memory:///")
    staged.put(named.path, listed)
    name = f"{source.name}/{named.path}"
    inputs = _checked(name, lambda: read_input_list(staged, dataset, int(number)))
    if _VERSION_DIRECTORY.fullmatch(inputs.directory) is None or not all(map(_DUMP_PATH.fullmatch, inputs.inputs)):
        raise RefusedSourceError(f"{name} names files outside the folders of dumps and LevelDBs")
    path = f"{leveldb_path(dataset, inputs.directory)}/{MANIFEST_NAME}"
    content = small_file(source, path, MOST_MANIFEST_BYTES)
    if hashlib.sha256(content).hexdigest() != inputs.manifest_sha256:
        raise WrongContentError(f"{source.name}/{path} is not the manifest that {named.path} names: its sha256 differs")
    _parsed(content, name)
    staged.put(path, content)
    name = f"{source.name}/{path}"
    version = _checked(name, lambda: read_published(staged, dataset, int(number)))
    manifest = version.manifest
    if manifest.serial != inputs.serial:
        raise RefusedSourceError(f"{name} has serial {manifest.serial}, but {named.path} has serial {inputs.serial}")
    if (manifest.dataset, manifest.version, manifest.directory) != (dataset, int(number), inputs.directory):
        raise RefusedSourceError(f"{name} is the manifest of another version")
    files = tuple(
        _wanted(
            f"{leveldb_path(dataset, _plain(file.directory, _VERSION_DIRECTORY, name))}"
            f"/{_plain(file.name, _SIDE_FILES.get(dataset, _LEVELDB_FILE), name)}",
            file.size,
            file.sha256,
            name,
        )
        for file in manifest.files
    )
    return Publication(named.path, files, ((path, content), (named.path, listed)), version)


def held_publication(storage: Storage, path: str) -> Publication | None:
    """Return a local publication by its root path, or None if it is not complete."""
    source = StoredSource(storage)
    try:
        named = Named.of(path, storage.get(path))
        if path.startswith(f"{DUMPS}/"):
            return fetch_dump(source, named)
        return fetch_version(source, path.partition("/")[0], named)
    except (MirrorError, ObjectNotFoundError):
        return None


def _fetch_named(source: Source, named: Named, most_bytes: int) -> bytes:
    content = small_file(source, named.path, most_bytes)
    if Named.of(named.path, content) != named:
        raise WrongContentError(
            f"{source.name}/{named.path} does not match published.json: its size or its sha256 differs"
        )
    if named.path.endswith(".json"):
        _parsed(content, f"{source.name}/{named.path}")
    return content


def _parsed(content: bytes, name: str) -> Any:
    if sum(map(content.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise RefusedSourceError(f"{name} has more than {MOST_VALUES:,} values")
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise RefusedSourceError(f"{name} is not JSON: {error}") from error


def _checked(name: str, read: Callable[[], _T]) -> _T:
    try:
        return read()
    except (DumpDamagedError, LeveldbError, JournalDamagedError, TypeError, ValueError, AttributeError) as error:
        raise RefusedSourceError(f"{name} cannot be read: {str(error)[:500]}") from error


def _head(stream: JournalStream, fields: object, name: str) -> Head:
    staged = open_storage("memory:///")
    staged.put(head_path(stream), orjson.dumps(fields))
    head = _checked(name, lambda: read_head(staged, stream))
    if head is None or head.stream != stream.value:
        raise RefusedSourceError(f"{name} has no head of the stream {stream.value}")
    for value in (head.generation, head.start, head.end, head.number):
        _number(value, name)
    if not 0 < head.generation < 10_000 or head.number > MOST_SEGMENTS or (head.digest is None) != (head.number == 0):
        raise RefusedSourceError(f"{name} has an impossible head of the stream {stream.value}")
    if head.digest is not None:
        _hash(head.digest, name)
    if head.takedowns is not None:
        _number(head.takedowns.number, name)
        _hash(head.takedowns.digest, name)
    if head.pruned is not None and not (0 < head.pruned.number <= head.number and 0 < head.pruned.end <= head.end):
        raise RefusedSourceError(f"{name} has a head of the stream {stream.value} with more pruned than it has")
    if head.open is not None:
        if head.open.serials.start != head.end:
            raise RefusedSourceError(f"{name} has an open segment of the stream {stream.value} after a gap")
        if not _is_short(head):
            raise RefusedSourceError(f"{name} has an open segment of the stream {stream.value} that should be complete")
        _number(head.open.serials.end, name)
        _number(head.open.content_bytes, name)
        if head.open.name != segment_name(head.open.serials, _hash(head.open.sha256, name), OPEN_PREFIX):
            raise RefusedSourceError(f"{name} names {head.open.name!r}, which is not the name of that open segment")
    return head


def _is_short(head: Head) -> bool:
    """Check whether the open segment's serials lie in one cell of the grid.

    A complete cell would have a segment in the chain. So a source cannot claim an end that is far ahead.
    """
    return head.open is None or head.open.serials.start // GRID == head.open.serials.end // GRID


def _checkpoint(fields: object, name: str) -> bytes:
    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    content = _checked(name, lambda: orjson.dumps(_object(fields, name), option=options))
    if len(content) > MOST_CHECKPOINT_BYTES:
        raise RefusedSourceError(f"{name} has a checkpoint of more than {MOST_CHECKPOINT_BYTES:,} bytes")
    return content


def _named(entries: object, most: int, name: str) -> tuple[Named, ...]:
    if not isinstance(entries, list) or len(entries) > most:
        raise RefusedSourceError(f"{name}: expected a list of at most {most} entries")
    found = []
    for entry in entries:
        fields = _object(entry, name)
        path = fields.get("path")
        if not isinstance(path, str):
            raise RefusedSourceError(f"{name} has an entry without a path")
        found.append(Named(path, _number(fields.get("size"), name), _hash(fields.get("sha256"), name)))
    return tuple(found)


def _wanted(path: str, size: object, sha256: object, name: str) -> WantedFile:
    bytes_of_file = _number(size, name)
    if bytes_of_file > MOST_FILE_BYTES:
        raise RefusedSourceError(f"{name} names {path} with {bytes_of_file:,} bytes, more than a file may have")
    return WantedFile(path, bytes_of_file, _hash(sha256, name))


def _plain(text: object, pattern: re.Pattern[str], name: str) -> str:
    if not isinstance(text, str) or pattern.fullmatch(text) is None:
        raise RefusedSourceError(f"{name} names {str(text)[:200]!r}, which is not a valid filename there")
    return text


def _hash(value: object, name: str) -> str:
    if not isinstance(value, str) or _SHA256.fullmatch(value) is None:
        raise RefusedSourceError(f"{name}: expected a sha256, found {str(value)[:80]!r}")
    return value


def _number(value: object, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST_NUMBER:
        raise RefusedSourceError(f"{name}: expected a number, found {str(value)[:80]!r}")
    return value


def _end_of(path: str) -> int:
    """Return the last serial of a dump, by the path of its manifest, or 0 if the path is not valid."""
    directory = path.removeprefix(f"{DUMPS}/").partition("/")[0]
    if _DUMP_DIRECTORY.fullmatch(directory) is None:
        return 0
    return int(directory.partition("-")[2].partition(".")[0])


def _part(fields: Mapping[str, Any], part: str, name: str) -> Mapping[str, Any]:
    """Return a part of published.json, which is empty if nothing of it is published yet."""
    found = fields.get(part)
    return {} if found is None else _object(found, name)


def _object(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise RefusedSourceError(f"{name}: expected a JSON object")
    return value
