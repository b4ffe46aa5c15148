"""The manifest of a Parquet export. It is written last, commits the export, and lists its files."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise

import orjson

from pypi_assets.catalog.coordination.leases import Deadlines
from pypi_assets.catalog.publications.dump_columns import COLUMNS, DumpFile
from pypi_assets.catalog.publications.dump_registry import Dump
from pypi_assets.dumps.dump_manifest import (
    COLUMNS_FORMAT,
    MANIFEST_NAME,
    ManifestOfFiles,
    decode_files,
)
from pypi_assets.dumps.held_dumps import HeldDumps
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


KEY_COLUMNS = ("normalized", "version", "filename")
"""The order of rows. The project's name and the filename identify a distribution."""
CHANGE_COLUMNS = (
    ("tombstone", BOOLEAN, "true: deleted, and only normalized, version and filename have values"),
    ("layer", INTEGER, "the number of the layer; of several changes of a file, the greatest counts"),
)
"""The further columns of changes: name, type and meaning."""

PARQUET = "parquet"
EXPORTS = f"{PARQUET}/python_distribution_data"
ROWS_NAME = "{directory}/bucket={bucket:04d}/rows.parquet"
CHANGES_NAME = "{directory}/changes/changes{bucket:04d}.parquet"


def export_path(directory: str) -> str:
    """Return the storage path of the export in `directory`, which is named like `0-1350` or `0-1350.2`."""
    return f"{EXPORTS}/{directory}"


def file_path(name: str) -> str:
    """Return the storage path of a file that a manifest names like `0-1350/bucket=0007/rows.parquet`."""
    return f"{EXPORTS}/{name}"


def manifest_path(directory: str) -> str:
    return f"{export_path(directory)}/{MANIFEST_NAME}"


FORMAT = 2
_WITHOUT_LAYERS = 1
_NAME = re.compile(r"0-(?P<serial>[0-9]+)(?:\.(?P<attempt>[0-9]+))?")


class ParquetError(ExpectedError):
    """An export cannot be made, or a published export is corrupt. The message has the reason, and the remedy."""


@dataclass(frozen=True, slots=True)
class ExportLayer(ManifestOfFiles):
    """Rows that an export added. The first layer, number 0, has the rows of all buckets, and each other one changes.

    A file's `shard` is its bucket, and its `name` is relative to the folder of all exports. `held` are the dumps up to
    this layer, or None in the first format. `live` is the number of live distributions up to this layer.
    """

    number: int
    held: HeldDumps | None
    live: int
    files: tuple[DumpFile, ...]


@dataclass(frozen=True, slots=True)
class Export:
    """One committed export: all distributions that are live at `serial`, from the dumps of `cover`.

    The changes of a later layer replace the rows of earlier layers. Files of earlier layers can be in the folders of
    earlier exports. `followed_projects` is the last dump's number of projects that scopes follow, or None if the whole
    index is followed. Exports of the first format have no `buckets`.
    """

    serial: int
    directory: str
    cover: tuple[str, ...]
    buckets: int
    layers: tuple[ExportLayer, ...]
    columns: tuple[str, ...] = tuple(PARQUET_COLUMNS)
    followed_projects: int | None = None

    @property
    def rows(self) -> int:
        """Return the number of live distributions."""
        return self.layers[-1].live

    @property
    def files(self) -> tuple[DumpFile, ...]:
        return tuple(file for layer in self.layers for file in layer.files)

    @property
    def size(self) -> int:
        return sum(layer.size for layer in self.layers)

    @property
    def changed_rows(self) -> int:
        return sum(layer.rows for layer in self.layers[1:])

    def has_dumps(self, cover: Sequence[Dump]) -> bool:
        """Check whether the export has exactly the dumps of `cover`. A compaction counts as the dumps it joined."""
        held = self.layers[-1].held
        if held is None:
            return self.cover == tuple(dump.directory for dump in cover)
        return bool(cover) and held == HeldDumps.of(cover)

    def encode(self) -> bytes:
        """Return the manifest's JSON. It contains no time, so writing it again gives the same bytes."""
        fields = {
            "format": FORMAT,
            "serial": self.serial,
            "directory": self.directory,
            "cover": self.cover,
            **({} if self.followed_projects is None else {"followed_projects": self.followed_projects}),
            "columns_version": COLUMNS_FORMAT,
            "columns": {name: asdict(PARQUET_COLUMNS[name]) for name in self.columns},
            "rows": self.rows,
            "bytes": self.size,
            "buckets": self.buckets,
            "layers": [
                {
                    "layer": layer.number,
                    "held": layer.held.encode() if layer.held else None,
                    "live": layer.live,
                    "files": layer.encoded_files(),
                }
                for layer in self.layers
            ],
        }
        return orjson.dumps(fields, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


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


def in_order(directories: Iterable[str]) -> list[str]:
    """Return the names of exports by age, the newest last: `0-1350`, `0-1350.2`, `0-1400`. Skip other names."""
    named = (match for match in map(_NAME.fullmatch, directories) if match)
    return [match[0] for match in sorted(named, key=lambda match: (int(match["serial"]), int(match["attempt"] or 1)))]


def newest_export(storage: Storage) -> Export | None:
    """Return the newest export with a readable manifest whose files are stored with the right sizes, or None."""
    sizes = {stored.path: stored.size for stored in storage.list(EXPORTS)}
    for directory in reversed(in_order({path.removeprefix(f"{EXPORTS}/").partition("/")[0] for path in sizes})):
        if manifest_path(directory) not in sizes:
            continue
        try:
            export = read_export(storage, directory)
        except ParquetError:
            continue
        if all(sizes.get(file_path(file.name)) == file.size for file in export.files):
            return export
    return None


def _decode(content: bytes) -> Export:
    fields = orjson.loads(content)
    if fields["format"] not in {FORMAT, _WITHOUT_LAYERS} or fields["columns_version"] != COLUMNS_FORMAT:
        raise ValueError(f"format {fields['format']} with columns {fields['columns_version']}")
    directory = str(fields["directory"])
    if fields["format"] == _WITHOUT_LAYERS:
        files = (replace(file, name=f"{directory}/{file.name}") for file in decode_files(fields))
        layers: tuple[ExportLayer, ...] = (ExportLayer(0, None, int(fields["rows"]), tuple(files)),)
    else:
        layers = tuple(
            ExportLayer(int(layer["layer"]), HeldDumps.decode(layer["held"]), int(layer["live"]), decode_files(layer))
            for layer in fields["layers"]
        )
    if not layers:
        raise ValueError("no layers")
    return Export(
        serial=int(fields["serial"]),
        directory=directory,
        cover=tuple(fields["cover"]),
        buckets=int(fields.get("buckets", 0)),
        layers=layers,
        columns=tuple(fields["columns"]),
        followed_projects=fields.get("followed_projects"),
    )


def clean_exports(storage: Storage, deadlines: Deadlines, *, kept: int, dry_run: bool = False) -> Iterator[Removal]:
    """Delete superseded and abandoned exports, and yield the deletions. A `dry_run` deletes nothing.

    Superseded are exports before the newest `kept` whose successor was published before `deadlines.since`. Abandoned
    are folders without a manifest to which nothing was written since `deadlines.old`. Files that a kept export names
    stay, whatever folder they are in. While the manifest of a kept export cannot be read, everything stays.

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
    try:
        named = set(_named_files(storage, [directory for directory in committed if directory not in superseded]))
    except ParquetError:
        return

    def unnamed(directory: str, found: Sequence[StoredObject]) -> Waste | None:
        waste = [stored for stored in found if stored.path not in named]
        if directory in manifests:
            return (DeletionReason.SUPERSEDED, waste) if directory in superseded else None
        if not waste or not all(is_older(stored, deadlines.old) for stored in waste):
            return None
        return DeletionReason.ABANDONED, waste

    yield from sweep_directories(storage, EXPORTS, exports, unnamed, dry_run=dry_run)


def _named_files(storage: Storage, directories: Iterable[str]) -> Iterator[str]:
    for directory in directories:
        for file in read_export(storage, directory).files:
            yield file_path(file.name)
