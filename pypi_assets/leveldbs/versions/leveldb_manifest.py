"""The manifest of a published LevelDB: the paths and hashes of its files, its content, and its inputs."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, UnknownFormatError
from pypi_assets.leveldbs.versions.input_lists import (
    MANIFEST_NAME,
    InputList,
    input_list_path,
    leveldb_path,
    leveldbs_path,
    published_versions,
    read_input_list,
)
from pypi_assets.storage.published import name_objects, publish_part
from pypi_assets.storage.store import ObjectNotFoundError, Storage

MANIFEST_FORMAT = 2
_FINAL = (".ldb", *(dataset.side_files.suffix for dataset in DATASETS.values() if dataset.side_files))


@dataclass(frozen=True, slots=True)
class LeveldbFile:
    """One file of a LevelDB. `size` is in bytes, and `directory` is the folder of the version that added it."""

    name: str
    directory: str
    size: int
    sha256: str

    @property
    def is_final(self) -> bool:
        """True for tables and files beside the LevelDB: they never change, and their names are never used again."""
        return self.name.endswith(_FINAL)


@dataclass(frozen=True, slots=True)
class LeveldbManifest:
    """The manifest of a version.

    `cover` are the directories of the cover's dumps, in order. `held` describes the applied dumps independently of
    compactions, in the form of HeldDumps. `base_version` is the version it was built on; if there is none,
    `rebuilt_because` is the reason. `followed_projects` is the number of followed projects from the last dump, or None
    if the whole index is followed.
    """

    dataset: str
    dataset_format: int
    version: int
    directory: str
    serial: int
    counts: Mapping[str, int]
    content_hash: str
    files: tuple[LeveldbFile, ...]
    cover: tuple[str, ...]
    held: tuple[str, ...]
    base_version: int | None
    rebuilt_because: str | None
    followed_projects: int | None = None

    def encode(self) -> bytes:
        fields = {"format": MANIFEST_FORMAT, **asdict(self)}
        if self.followed_projects is None:
            del fields["followed_projects"]
        return orjson.dumps(fields, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """A valid version: its input list, and the manifest whose hash is in the list."""

    inputs: InputList
    manifest: LeveldbManifest

    @property
    def path(self) -> str:
        """The storage path of its own folder, which has its manifest and the files that it added."""
        return leveldb_path(self.manifest.dataset, self.manifest.directory)

    def path_of(self, file: LeveldbFile) -> str:
        """Return the storage path of one of its files."""
        return f"{leveldb_path(self.manifest.dataset, file.directory)}/{file.name}"

    @property
    def name(self) -> str:
        return f"version {self.manifest.version} of {self.manifest.dataset}"


def read_published(storage: Storage, dataset: str, version: int) -> PublishedVersion:
    """Return a published version. Raises LeveldbDamagedError if its input list or manifest is missing or corrupt."""
    return read_listed(storage, read_input_list(storage, dataset, version))


def read_listed(storage: Storage, inputs: InputList) -> PublishedVersion:
    """Return the version that an input list makes valid. Raises LeveldbDamagedError and UnknownFormatError."""
    path = f"{leveldb_path(inputs.dataset, inputs.directory)}/{MANIFEST_NAME}"
    try:
        content = storage.get(path)
    except ObjectNotFoundError as error:
        raise LeveldbDamagedError(f"{storage.uri(path)} is missing") from error
    if hashlib.sha256(content).hexdigest() != inputs.manifest_sha256:
        raise LeveldbDamagedError(f"{storage.uri(path)} is not the manifest that the input list names")
    try:
        return PublishedVersion(inputs, _decode(content, storage.uri(path)))
    except (KeyError, TypeError, ValueError) as error:
        raise LeveldbDamagedError(f"{storage.uri(path)} is not a manifest: {error!r}") from error


def check_sizes(storage: Storage, published: PublishedVersion) -> None:
    """Raise LeveldbDamagedError if a file is missing or has the wrong size. Contents are not read."""
    sizes = {stored.path: stored.size for stored in storage.list(leveldbs_path(published.manifest.dataset))}
    for file in published.manifest.files:
        path = published.path_of(file)
        if sizes.get(path) != file.size:
            found = sizes.get(path, "nothing")
            raise LeveldbDamagedError(f"{storage.uri(path)} must have {file.size} bytes, not {found}")


def check_file(path: Path, file: LeveldbFile, *, hashes: bool = True) -> None:
    """Raise LeveldbDamagedError if a local file is missing or has the wrong size, or the wrong content if `hashes`."""
    try:
        size = path.stat().st_size
    except FileNotFoundError as error:
        raise LeveldbDamagedError(f"{path} is missing") from error
    if size != file.size:
        raise LeveldbDamagedError(f"{path} must have {file.size} bytes, not {size}")
    if hashes and file_sha256(path) != file.sha256:
        raise LeveldbDamagedError(f"{path} does not match its manifest: its sha256 differs")


def file_sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _decode(content: bytes, uri: str) -> LeveldbManifest:
    fields = orjson.loads(content)
    if fields.pop("format") != MANIFEST_FORMAT:
        raise UnknownFormatError(f"{uri} has a format that this version of pypi-assets does not know: upgrade it")
    fields["files"] = tuple(LeveldbFile(**file) for file in fields["files"])
    return LeveldbManifest(**fields | {"cover": tuple(fields["cover"]), "held": tuple(fields["held"])})


PART = "leveldbs"
_LOOKED_AT = 2
"""The versions of a dataset among which a common serial is searched. Older versions can be deleted at any moment."""


def publish_leveldbs(storage: Storage) -> None:
    """Name the newest versions in `published.json`. Call it after each publication."""

    def compute() -> object:
        return {
            dataset: name_objects(storage, PART, [input_list_path(dataset, version) for version in versions])
            for dataset, versions in _current(storage).items()
        }

    publish_part(storage, PART, compute)


def _current(storage: Storage) -> dict[str, list[int]]:
    """Return the versions to name, by dataset, ascending.

    These are the newest version of each dataset, and the newest set of versions with a common serial.
    """
    found = {dataset: published_versions(storage, dataset)[-_LOOKED_AT:] for dataset in DATASETS}
    found = {dataset: versions for dataset, versions in found.items() if versions}
    newest = {_serial(storage, dataset, versions[-1]) for dataset, versions in found.items()}
    if len(newest) <= 1:
        return {dataset: versions[-1:] for dataset, versions in found.items()}
    serials = {
        dataset: {_serial(storage, dataset, version): version for version in versions}
        for dataset, versions in found.items()
    }
    common = set.intersection(*(set(of_dataset) for of_dataset in serials.values())) - {0}
    of_set = max(common, default=0)
    return {
        dataset: sorted({versions[-1], *([serials[dataset][of_set]] if of_set else [])})
        for dataset, versions in found.items()
    }


def _serial(storage: Storage, dataset: str, version: int) -> int:
    """Return the serial of a version, or 0 if its input list is missing or corrupt."""
    try:
        return read_input_list(storage, dataset, version).serial
    except LeveldbDamagedError:
        return 0
