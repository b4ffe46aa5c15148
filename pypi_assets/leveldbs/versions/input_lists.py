"""Reads and writes input lists: text files that make a LevelDB version valid and name its inputs.

It also defines the paths of versions in the storage.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter

from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets.storage.store import ObjectNotFoundError, Storage, StorageError, StoredObject

MANIFEST_NAME = "_MANIFEST.json"


def version_name(version: int) -> str:
    """Return the name of a version, such as `00042`."""
    return f"{version:05d}"


def input_lists_path(dataset: str) -> str:
    return f"{dataset}/input_lists"


def input_list_path(dataset: str, version: int) -> str:
    return f"{input_lists_path(dataset)}/{version_name(version)}"


def leveldbs_path(dataset: str) -> str:
    return f"{dataset}/leveldbs"


def leveldb_path(dataset: str, directory: str) -> str:
    """Return the folder of one attempt to build a version.

    `directory` is `00042`, or `00042.2` for a second attempt.
    """
    return f"{leveldbs_path(dataset)}/{directory}"


_NAME = re.compile(r"[0-9]{5,}")
_COMMENT = re.compile(r"# (leveldb|manifest sha256|serial): (.+)")


@dataclass(frozen=True, slots=True)
class InputList:
    """The input list of a version.

    `directory` is the LevelDB's folder, `manifest_sha256` its manifest's hash in hexadecimal digits, and `inputs` are
    storage paths in the order in which they were applied.
    """

    dataset: str
    version: int
    directory: str
    manifest_sha256: str
    serial: int
    inputs: tuple[str, ...]


def published_versions(storage: Storage, dataset: str) -> list[int]:
    """Return the valid versions of `dataset`, ascending. A version is valid if its input list exists."""
    return list(stored_input_lists(storage, dataset))


def stored_input_lists(storage: Storage, dataset: str) -> dict[int, StoredObject]:
    """Return the input list of each valid version, ascending."""
    start = f"{input_lists_path(dataset)}/"
    names = ((stored.path.removeprefix(start), stored) for stored in storage.list(input_lists_path(dataset)))
    return dict(sorted(((int(name), stored) for name, stored in names if _NAME.fullmatch(name)), key=itemgetter(0)))


def newest_serials(storage: Storage, datasets: Iterable[str]) -> list[int]:
    """Return the serial of the newest version of each dataset that has one. Raises LeveldbDamagedError."""
    newest = [(dataset, published_versions(storage, dataset)[-1:]) for dataset in datasets]
    return [read_input_list(storage, dataset, version).serial for dataset, versions in newest for version in versions]


def write_input_list(storage: Storage, inputs: InputList) -> None:
    """Make the version valid. Everything that it names must have been written before."""
    lines = [
        f"# leveldb: {inputs.directory}",
        f"# manifest sha256: {inputs.manifest_sha256}",
        f"# serial: {inputs.serial}",
        *inputs.inputs,
    ]
    storage.put(input_list_path(inputs.dataset, inputs.version), "".join(f"{line}\n" for line in lines).encode())


def read_input_list(storage: Storage, dataset: str, version: int) -> InputList:
    """Return an input list. Raises LeveldbDamagedError if the version is not valid or its list is not readable."""
    path = input_list_path(dataset, version)
    uri = storage.uri(path)
    try:
        lines = storage.get(path).decode().splitlines()
    except ObjectNotFoundError as error:
        raise LeveldbDamagedError(f"there is no version {version} of {dataset}: {uri} is missing") from error
    except UnicodeDecodeError as error:
        raise LeveldbDamagedError(f"{uri} is not text") from error
    comments = {match[1]: match[2] for line in lines if (match := _COMMENT.fullmatch(line))}
    try:
        return InputList(
            dataset=dataset,
            version=version,
            directory=comments["leveldb"],
            manifest_sha256=comments["manifest sha256"],
            serial=int(comments["serial"]),
            inputs=tuple(_place(line) for line in lines if line and not line.startswith("#")),
        )
    except (KeyError, ValueError, StorageError) as error:
        raise LeveldbDamagedError(f"{uri} is not an input list: {error!r}") from error


def _place(line: str) -> str:
    """Return the storage path that a line names."""
    if "://" in line or line.startswith("/"):
        raise StorageError(f"{line:.200} is not below the root")
    return line
