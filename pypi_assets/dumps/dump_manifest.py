"""The manifest of a dump. It is written last, commits the dump, and lists its files and columns."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from pypi_assets.catalog.ledger.serial_range import RangeError, SerialRange
from pypi_assets.catalog.publications.dump_columns import COLUMNS, DumpFile, DumpKind, Leaves
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.storage.store import ObjectNotFoundError, Storage

DUMPS = "data_dumps/python_distribution_data"
MANIFEST_NAME = "_MANIFEST.json"


def dump_path(directory: str) -> str:
    """Return the storage path of the dump in `directory`, which is named like `0-1200` or `1200-1350.2`."""
    return f"{DUMPS}/{directory}"


def file_path(directory: str, name: str) -> str:
    return f"{dump_path(directory)}/{name}"


def manifest_path(directory: str) -> str:
    return file_path(directory, MANIFEST_NAME)


def shard_of(normalized: str, shards: int) -> int:
    """Return a project's shard: the first bits of the SHA-256 of the normalized project name, eight for 256 shards.

    `shards` is a power of two, up to 65,536.
    """
    return int.from_bytes(hashlib.sha256(normalized.encode()).digest()[:2], "big") * shards >> 16


def shard_key(shard: int) -> str:
    """Return the partition key of a shard out of 256: the first two hex digits of the hashes of its projects' names.

    >>> shard_key(shard_of("requests", 256))
    'ec'
    """
    return f"{shard:02x}"


FORMAT = 1
COLUMNS_FORMAT = 1
"""The field `columns_version`. Readers reject an unknown version, so it is raised when a column changes its meaning. It
is not raised when columns are added, because older readers ignore the columns that they do not know.
"""


class ManifestOfFiles:
    """The common part of all manifests of shard files."""

    __slots__ = ()
    files: tuple[DumpFile, ...]

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def size(self) -> int:
        """Return the compressed size of all files in bytes."""
        return sum(file.size for file in self.files)

    def encoded_files(self) -> list[dict[str, object]]:
        """Return the files as the JSON of a manifest names them."""
        return [
            {"shard": file.shard, "name": file.name, "rows": file.rows, "bytes": file.size, "sha256": file.sha256}
            for file in self.files
        ]

    def encode_with_files(self, fields: Mapping[str, object]) -> bytes:
        """Return the JSON of `fields`, followed by the files."""
        of_files = {"rows": self.rows, "bytes": self.size, "files": self.encoded_files()}
        return orjson.dumps({**fields, **of_files}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def decode_files(fields: Mapping[str, Any]) -> tuple[DumpFile, ...]:
    """Return the files that the JSON of a manifest names."""
    return tuple(
        DumpFile(file["shard"], file["name"], file["rows"], file["bytes"], file["sha256"]) for file in fields["files"]
    )


@dataclass(frozen=True, slots=True)
class DumpManifest(ManifestOfFiles):
    """One committed dump.

    `inputs` are the directories that a compaction joined, and `joined` their leaves, as in Dump. `columns` are the
    names of the rows' columns, in order. `followed_projects` is the number of projects that scopes follow and that have
    answers at the last serial, or None if the whole index is followed.
    """

    kind: DumpKind
    serials: SerialRange
    directory: str
    sequence: int
    shards: int
    inputs: tuple[str, ...]
    files: tuple[DumpFile, ...]
    columns: tuple[str, ...] = tuple(COLUMNS)
    joined: Leaves | None = None
    followed_projects: int | None = None

    def encode(self) -> bytes:
        """Return the manifest's JSON. It contains no time, so writing it again gives the same bytes."""
        fields = {
            "format": FORMAT,
            "kind": self.kind.value,
            "range": self.serials.key,
            "directory": self.directory,
            "sequence": self.sequence,
            "shards": self.shards,
            "inputs": self.inputs,
            **({} if self.joined is None else {"leaves": asdict(self.joined)}),
            **({} if self.followed_projects is None else {"followed_projects": self.followed_projects}),
            "columns_version": COLUMNS_FORMAT,
            "columns": {name: {"type": COLUMNS[name].type, "meaning": COLUMNS[name].meaning} for name in self.columns},
        }
        return self.encode_with_files(fields)


def write_manifest(storage: Storage, manifest: DumpManifest) -> None:
    storage.put(manifest_path(manifest.directory), manifest.encode())


def read_manifest(storage: Storage, directory: str) -> DumpManifest:
    """Return the manifest of the dump in `directory`. Raises DumpDamagedError if it is missing, corrupt or too new."""
    path = manifest_path(directory)
    try:
        content = storage.get(path)
    except ObjectNotFoundError as error:
        raise DumpDamagedError(f"there is no committed dump in {directory}: {storage.uri(path)} is missing") from error
    try:
        manifest = _decode(content)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, RangeError) as error:
        raise DumpDamagedError(f"{storage.uri(path)} is not a manifest that this version reads: {error!r}") from error
    if manifest.directory != directory or {file.shard for file in manifest.files} != set(range(manifest.shards)):
        raise DumpDamagedError(f"{storage.uri(path)} is not the manifest of {directory}, or lacks shards")
    return manifest


def committed_directories(storage: Storage) -> list[str]:
    """Return the directories of all dumps with a manifest, found by listing the storage."""
    return sorted(directories_with_manifest(storage, DUMPS))


def directories_with_manifest(storage: Storage, path: str) -> Iterator[str]:
    """Yield the directories of the folder `path` that have a manifest, in no defined order."""
    for stored in storage.list(path):
        directory, _, rest = stored.path.removeprefix(f"{path}/").partition("/")
        if rest == MANIFEST_NAME:
            yield directory


def _decode(content: bytes) -> DumpManifest:
    fields = orjson.loads(content)
    if fields["format"] != FORMAT or fields["columns_version"] != COLUMNS_FORMAT:
        raise ValueError(f"format {fields['format']} with columns {fields['columns_version']}")
    return DumpManifest(
        kind=DumpKind(fields["kind"]),
        serials=SerialRange.parse(fields["range"]),
        directory=str(fields["directory"]),
        sequence=int(fields["sequence"]),
        shards=int(fields["shards"]),
        inputs=tuple(fields["inputs"]),
        files=decode_files(fields),
        columns=tuple(fields["columns"]),
        joined=Leaves(**fields["leaves"]) if "leaves" in fields else None,
        followed_projects=fields.get("followed_projects"),
    )
