"""The manifest of a Parquet export. It is written last, commits the export, and lists its files."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

import orjson

from pypi_assets.catalog.coordination.leases import Deadlines
from pypi_assets.catalog.publications.dump_columns import COLUMNS, DumpFile
from pypi_assets.dumps.dump_manifest import (
    COLUMNS_FORMAT,
    MANIFEST_NAME,
    ManifestOfFiles,
    decode_files,
    directories_with_manifest,
)
from pypi_assets.errors import ExpectedError
from pypi_assets.storage.store import ObjectNotFoundError, Storage, StoredObject
from pypi_assets.storage.sweeping import DeletionReason, Removal, Waste, by_directory, is_older, sweep_directories

STRING = "string"
INTEGER = "int64"
BOOLEAN = "bool"
TIMESTAMP = "timestamp[us, tz=UTC]"
STRINGS = "list<string>"

_TYPES = {"string": STRING, "integer": INTEGER, "boolean": BOOLEAN, "array of strings": STRINGS}
_TIMESTAMPS = frozenset({"uploaded_at", "first_seen_at"})
_NEVER_TRUE = frozenset({"tombstone"})


@dataclass(frozen=True, slots=True)
class ParquetColumn:
    """A column: its Arrow type, whether it can be null, and its meaning."""

    type: str
    nullable: bool
    meaning: str


def _parquet_column(name: str) -> ParquetColumn:
    json_type, _, null = COLUMNS[name].type.partition(" or ")
    type_ = TIMESTAMP if name in _TIMESTAMPS else _TYPES[json_type]
    return ParquetColumn(type_, null == "null", COLUMNS[name].meaning)


PARQUET_COLUMNS = {name: _parquet_column(name) for name in COLUMNS if name not in _NEVER_TRUE}


EXPORTS = "parquet/python_distribution_data"
FILE_NAME = "python_distribution_data{shard:04d}.parquet"


def export_path(directory: str) -> str:
    """Return the storage path of the export in `directory`, which is named like `0-1350` or `0-1350.2`."""
    return f"{EXPORTS}/{directory}"


def file_path(directory: str, name: str) -> str:
    return f"{export_path(directory)}/{name}"


def manifest_path(directory: str) -> str:
    return file_path(directory, MANIFEST_NAME)


def files_glob(directory: str) -> str:
    """Return a pattern of all files of the export, relative to the storage's URL, for DuckDB's `read_parquet`."""
    return file_path(directory, "*.parquet")


FORMAT = 1
_NAME = re.compile(r"0-(?P<serial>[0-9]+)(?:\.(?P<attempt>[0-9]+))?")


class ParquetError(ExpectedError):
    """An export cannot be made, or a published export is corrupt. The message has the reason, and the remedy."""


@dataclass(frozen=True, slots=True)
class Export(ManifestOfFiles):
    """One committed export: all distributions that are live at `serial`, from the dumps of `cover`.

    Each file holds successive shards of the full dump, and has the number of the first of them. `followed_projects` is
    the last dump's number of projects that scopes follow, or None if the whole index is followed.
    """

    serial: int
    directory: str
    cover: tuple[str, ...]
    files: tuple[DumpFile, ...]
    followed_projects: int | None = None

    def encode(self) -> bytes:
        """Return the manifest's JSON. It contains no time, so writing it again gives the same bytes."""
        fields = {
            "format": FORMAT,
            "serial": self.serial,
            "directory": self.directory,
            "cover": self.cover,
            **({} if self.followed_projects is None else {"followed_projects": self.followed_projects}),
            "columns_version": COLUMNS_FORMAT,
            "columns": {name: asdict(column) for name, column in PARQUET_COLUMNS.items()},
        }
        return self.encode_with_files(fields)


def read_export(storage: Storage, directory: str) -> Export:
    """Return the manifest of the export in `directory`. Raises ParquetError if it is missing, corrupt or too new."""
    path = manifest_path(directory)
    try:
        content = storage.get(path)
    except ObjectNotFoundError as error:
        raise ParquetError(f"there is no committed export in {directory}: {storage.uri(path)} is missing") from error
    try:
        export = _decode(content)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
        raise ParquetError(f"{storage.uri(path)} is not a manifest that this version reads: {error!r}") from error
    if export.directory != directory:
        raise ParquetError(f"{storage.uri(path)} is not the manifest of {directory}")
    return export


def committed_exports(storage: Storage) -> list[str]:
    """Return the directories of all exports with a manifest, the newest last."""
    return in_order(directories_with_manifest(storage, EXPORTS))


def in_order(directories: Iterable[str]) -> list[str]:
    """Return the names of exports by age, the newest last: `0-1350`, `0-1350.2`, `0-1400`. Skip other names."""
    named = (match for match in map(_NAME.fullmatch, directories) if match)
    return [match[0] for match in sorted(named, key=lambda match: (int(match["serial"]), int(match["attempt"] or 1)))]


def newest_export(storage: Storage) -> Export | None:
    """Return the newest export with a readable manifest whose files are stored with the right sizes, or None."""
    for directory in reversed(committed_exports(storage)):
        try:
            export = read_export(storage, directory)
        except ParquetError:
            continue
        sizes = {stored.path: stored.size for stored in storage.list(export_path(directory))}
        if all(sizes.get(file_path(directory, file.name)) == file.size for file in export.files):
            return export
    return None


def _decode(content: bytes) -> Export:
    fields = orjson.loads(content)
    if fields["format"] != FORMAT or fields["columns_version"] != COLUMNS_FORMAT:
        raise ValueError(f"format {fields['format']} with columns {fields['columns_version']}")
    return Export(
        serial=int(fields["serial"]),
        directory=str(fields["directory"]),
        cover=tuple(fields["cover"]),
        files=decode_files(fields),
        followed_projects=fields.get("followed_projects"),
    )


def clean_exports(storage: Storage, deadlines: Deadlines, *, kept: int, dry_run: bool = False) -> Iterator[Removal]:
    """Delete superseded and abandoned exports, and yield the deletions. A `dry_run` deletes nothing.

    Superseded are exports before the newest `kept` whose successor was published before `deadlines.since`. Abandoned
    are folders without a manifest to which nothing was written since `deadlines.old`.

    The deadlines protect files that a process with a lease may be writing. Readers of exports hold no lease.
    """
    folders = by_directory(storage, EXPORTS)
    exports = {directory: folders[directory] for directory in in_order(folders)}
    manifests = {
        directory: stored
        for directory, found in exports.items()
        for stored in found
        if stored.path == manifest_path(directory)
    }
    committed = list(manifests)
    superseded = {
        directory
        for directory, following in pairwise(committed[: max(0, len(committed) - kept + 1)])
        if is_older(manifests[following], deadlines.since)
    }

    def unnamed(directory: str, found: Sequence[StoredObject]) -> Waste | None:
        if directory in manifests:
            return (DeletionReason.SUPERSEDED, found) if directory in superseded else None
        return (DeletionReason.ABANDONED, found) if all(is_older(stored, deadlines.old) for stored in found) else None

    yield from sweep_directories(storage, EXPORTS, exports, unnamed, dry_run=dry_run)
