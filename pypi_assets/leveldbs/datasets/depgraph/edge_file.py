"""The file of sorted arrays beside a LevelDB of `depgraph`: which project requires which, for walks over many projects.

It is in the format safetensors: the length of the header in 8 bytes, a header in JSON, then the arrays. docs/formats.md
describes the arrays. A file is *whole*, or it has the *changes* since a whole file, which its header names as `base`.
The meaning of both together is in edges.py.
"""

import os
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import msgspec
import orjson

from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, UnknownFormatError

FORMAT = 1
SUFFIX = ".edges"
NO_FILES, AS_IN_BASE = 0xFFFFFFFF, 0xFFFFFFFE
"""Values of `release` for a project without files, and for a project whose release the changes do not state."""
SEVERAL_SPELLINGS = 1 << 31
"""The bit of `release` of a project whose newest release has files under several spellings of its version."""
RequirementLists = tuple[tuple[str, ...], ...]
"""The requirements of one project in each file of a release, as written. Equal lists are listed once."""
_lists_decoder = msgspec.json.Decoder(RequirementLists)
_END_OF_NAME = b"\0"
_LENGTH_BYTES = 8
_MOST_HEADER_BYTES = 1 << 20
_NUMBERS = (
    *("name_starts", "release", "place", "version_starts", "list_starts"),
    *("newest_starts", "newest_project", "requirements"),
    *("older_starts", "older_project", "deleted_starts", "deleted_project"),
)
_BYTES = ("names", "versions", "lists", "conditions")
_TYPES = dict.fromkeys(_NUMBERS, ("U32", 4)) | dict.fromkeys(_BYTES, ("U8", 1))


class EdgeFile:
    """A file of edges, mapped into memory. Nothing is read before it is needed.

    `base` is the name of the whole file that the changes refer to, or None for a whole file. `content_hash` is the hash
    of the records that the edges were made from. Raises LeveldbDamagedError and UnknownFormatError.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size < _LENGTH_BYTES:
                raise _damaged(path, "it ends in its header")
            self._map = mmap(file.fileno(), 0, access=ACCESS_READ)
        self._path, content = path, memoryview(self._map)
        size = int.from_bytes(content[:_LENGTH_BYTES], "little")
        if size > min(_MOST_HEADER_BYTES, len(content) - _LENGTH_BYTES):
            raise _damaged(path, "it ends in its header")
        self._data = content[_LENGTH_BYTES + size :]
        try:
            header = orjson.loads(content[_LENGTH_BYTES : _LENGTH_BYTES + size])
            stated: Mapping[str, str] = header.pop("__metadata__")
            if stated["format"] != str(FORMAT):
                raise UnknownFormatError(f"{path} has a format that this version of pypi-assets does not know: upgrade")
            self.base = str(stated["base"]) or None
            self._crc, self.content_hash = stated["crc32"], stated["content_hash"]
            sections = self._sections({name: header[name]["data_offsets"] for name in _TYPES})
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _damaged(path, f"its header is not valid: {error!r}") from error
        self.name_starts, self.release, self.place = sections["name_starts"], sections["release"], sections["place"]
        self.newest_starts, self.newest_project = sections["newest_starts"], sections["newest_project"]
        self.requirements = sections["requirements"]
        self.older_starts, self.older_project = sections["older_starts"], sections["older_project"]
        self.deleted_starts, self.deleted_project = sections["deleted_starts"], sections["deleted_project"]
        self._names_at = len(content) - len(self._data) + header["names"]["data_offsets"][0]
        self._names, self.conditions = sections["names"], sections["conditions"]
        self._version_starts, self._versions = sections["version_starts"], sections["versions"]
        self._list_starts, self._lists = sections["list_starts"], sections["lists"]
        starts = (self.name_starts, self.newest_starts, self.older_starts, self.deleted_starts)
        lengths = {*(len(one) - 1 for one in starts), len(self.release), *([len(self.place)] if self.base else ())}
        if (
            len(lengths) != 1
            or len(self.newest_project) != len(self.requirements)
            or len(self.conditions) != self.lists
        ):
            raise _damaged(path, "its arrays have different lengths")

    def _sections(self, offsets: Mapping[str, Sequence[int]]) -> "dict[str, memoryview[int]]":
        """Return the arrays. Raises ValueError unless they follow each other from the beginning of the data to its end.

        The checksum does not cover the header, and this detects any other offset in it.
        """
        sections, reached = {}, 0
        for name, (begin, end) in offsets.items():
            _, width = _TYPES[name]
            if begin != reached or not begin <= end <= len(self._data) or (end - begin) % width:
                raise ValueError(f"{name} is at {begin} to {end} of {len(self._data)} bytes")
            section, reached = self._data[begin:end], end
            sections[name] = section.cast("I") if width > 1 else section
        if reached != len(self._data):
            raise ValueError(f"{len(self._data) - reached} bytes follow the arrays")
        return sections

    @property
    def size(self) -> int:
        """Return the size in bytes."""
        return len(self._map)

    @property
    def names(self) -> int:
        """Return the number of names."""
        return len(self.name_starts) - 1

    @property
    def edges(self) -> int:
        """Return the number of edges, including deleted ones."""
        return len(self.newest_project) + len(self.older_project) + len(self.deleted_project)

    @property
    def versions(self) -> int:
        """Return the number of different versions."""
        return len(self._version_starts) - 1

    @property
    def lists(self) -> int:
        """Return the number of different requirement lists."""
        return len(self._list_starts) - 1

    def name_at(self, number: int) -> bytes:
        """Return a name in UTF-8."""
        starts = self.name_starts
        return self._map[self._names_at + starts[number] : self._names_at + starts[number + 1] - 1]

    def all_names(self) -> list[str]:
        """Return all names. For many of them, this takes less time than reading them one by one."""
        return str(self._names, "utf-8").split(_END_OF_NAME.decode())[:-1]

    def version_at(self, number: int) -> str:
        """Return a version."""
        starts = self._version_starts
        return str(self._versions[starts[number] : starts[number + 1]], "utf-8")

    def list_at(self, number: int) -> bytes:
        """Return requirement lists, as JSON."""
        starts = self._list_starts
        return bytes(self._lists[starts[number] : starts[number + 1]])

    def check(self) -> None:
        """Read the whole file and compare it with its checksum. Raises LeveldbDamagedError."""
        if crc_of([self._data]) != self._crc:
            raise _damaged(self._path, "its checksum differs")

    def check_numbers(self, names_of_base: int | None) -> None:
        """Raise LeveldbDamagedError if a number refers to nothing. For changes, the base has `names_of_base` names."""
        for starts, end in (
            (self.name_starts, len(self._names)),
            (self.newest_starts, len(self.newest_project)),
            (self.older_starts, len(self.older_project)),
            (self.deleted_starts, len(self.deleted_project)),
            (self._version_starts, len(self._versions)),
            (self._list_starts, len(self._lists)),
        ):
            ascending = all(begin <= following for begin, following in pairwise(starts))
            if not ascending or starts[0] != 0 or starts[-1] != end:
                raise _damaged(self._path, "an array of starts does not match its array")
        if any(name >= following for name, following in pairwise(map(self.name_at, range(self.names)))):
            raise _damaged(self._path, "its names do not ascend")
        no_versions = {NO_FILES} if names_of_base is None else {NO_FILES, AS_IN_BASE}
        releases = {number & ~SEVERAL_SPELLINGS for number in {*self.release} - no_versions}
        projects = max(max(one, default=0) for one in (self.newest_project, self.older_project, self.deleted_project))
        if (
            projects > max(0, self.names - 1)
            or max(self.requirements, default=0) >= self.lists
            or min(self.requirements, default=1) < 1
            or max(releases, default=-1) >= self.versions
            or len(self.place) != (0 if names_of_base is None else self.names)
            or max(self.place, default=0) // 2 > (names_of_base or 0)
        ):
            raise _damaged(self._path, "a number in it refers to nothing")
        try:
            for number, name in zip(range(self.names), self.all_names(), strict=True):
                if self.name_at(number) != name.encode():
                    raise ValueError("a name has another end than its zero byte")
            for number in range(self.versions):
                self.version_at(number)
            for number in range(self.lists):
                decode_lists(self.list_at(number))
        except ValueError as error:
            raise _damaged(self._path, f"a text in it is not valid: {error}") from error


def decode_lists(content: bytes) -> RequirementLists:
    """Return lists, with `*` in place of the required project's name. Raises msgspec.DecodeError."""
    return _lists_decoder.decode(content)


def write_edge_file(
    path: Path,
    *,
    base: str | None,
    content_hash: str,
    names: Sequence[bytes],
    release: "array[int]",
    place: "array[int]",
    newest: "tuple[array[int], array[int]]",
    requirements: "array[int]",
    older: "tuple[array[int], array[int]]",
    deleted: "tuple[array[int], array[int]]",
    versions: Iterable[bytes],
    lists: Iterable[bytes],
    conditions: bytes,
) -> None:
    """Write a file. The arrays must fit together, as docs/formats.md describes.

    `newest`, `older` and `deleted` are edges: where those of each required project start, and the projects.
    """
    name_starts, joined_names = _joined(name + _END_OF_NAME for name in names)
    version_starts, joined_versions = _joined(versions)
    list_starts, joined_lists = _joined(lists)
    arrays: dict[str, Any] = {
        "name_starts": name_starts,
        "newest_starts": newest[0],
        "newest_project": newest[1],
        "requirements": requirements,
        "older_starts": older[0],
        "older_project": older[1],
        "deleted_starts": deleted[0],
        "deleted_project": deleted[1],
        "release": release,
        "version_starts": version_starts,
        "list_starts": list_starts,
        "place": place,
        "names": joined_names,
        "versions": joined_versions,
        "lists": joined_lists,
        "conditions": conditions,
    }
    contents = {name: _encoded(arrays[name]) for name in _TYPES}
    header: dict[str, Any] = {
        "__metadata__": {
            "format": str(FORMAT),
            "base": base or "",
            "content_hash": content_hash,
            "crc32": crc_of(contents.values()),
        }
    }
    place_in_data = 0
    for name, (kind, width) in _TYPES.items():
        size = contents[name].nbytes
        offsets = [place_in_data, place_in_data + size]
        header[name] = {"dtype": kind, "shape": [size // width], "data_offsets": offsets}
        place_in_data += size
    encoded = orjson.dumps(header)
    encoded += b" " * (-len(encoded) % _LENGTH_BYTES)  # so that the arrays of numbers are aligned
    with path.open("wb") as file:
        file.write(len(encoded).to_bytes(_LENGTH_BYTES, "little"))
        file.write(encoded)
        for content in contents.values():
            file.write(content)


def crc_of(contents: Iterable["memoryview[int]"]) -> str:
    """Return the CRC-32 of these bytes one after the other, in 8 hexadecimal digits."""
    from isal import isal_zlib  # commands that only show help do without it

    crc = 0
    for content in contents:
        crc = isal_zlib.crc32(content, crc)
    return f"{crc:08x}"


def _joined(texts: Iterable[bytes]) -> "tuple[array[int], bytearray]":
    starts, joined = array("I", [0]), bytearray()
    for text in texts:
        joined += text
        starts.append(len(joined))
    return starts, joined


def _encoded(content: Any) -> "memoryview[int]":
    return memoryview(content).cast("B")


def _damaged(path: Path, why: str) -> LeveldbDamagedError:
    return LeveldbDamagedError(f"{path} is not a file of edges: {why}")
