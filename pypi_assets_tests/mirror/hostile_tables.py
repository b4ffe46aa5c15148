"""LevelDB tables that abort a process which opens them, and storages that publish such tables."""

import hashlib
import re
import shutil
import struct
from pathlib import Path

import orjson

from pypi_assets.leveldbs.format.open_leveldb import FOOTER_BYTES
from pypi_assets.leveldbs.versions.input_lists import published_versions
from pypi_assets.storage.published import PUBLISHED
from pypi_assets.storage.store import Storage, open_storage

HUGE = 2**62
_MAGIC = bytes.fromhex("57fb808b247547db")


def varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def crc32c(content: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in content:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def block(content: bytes) -> bytes:
    """Return an uncompressed block with its checksum."""
    checksum = crc32c(content + b"\0")
    masked = ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return content + b"\0" + struct.pack("<I", masked)


def entries(*pairs: tuple[bytes, bytes]) -> bytes:
    """Return the content of a block with these records."""
    content, restarts = b"", []
    for key, value in pairs:
        restarts.append(len(content))
        content += varint(0) + varint(len(key)) + varint(len(value)) + key + value
    restarts = restarts or [0]
    return content + b"".join(struct.pack("<I", restart) for restart in restarts) + struct.pack("<I", len(restarts))


def footer(metaindex: tuple[int, int], index: tuple[int, int]) -> bytes:
    handles = b"".join(varint(number) for pair in (metaindex, index) for number in pair)
    return handles.ljust(FOOTER_BYTES - len(_MAGIC), b"\0") + _MAGIC


def with_huge_index(table: bytes) -> bytes:
    """Return the table with a footer that names an index of 2**62 bytes."""
    return table[:-FOOTER_BYTES] + footer((0, 8), (0, HUGE))


def with_huge_block(table: bytes) -> bytes:
    """Return a table of the same size with a valid footer, whose index names a block of 2**62 bytes."""
    metaindex, index = block(entries()), block(entries((b"\xff" * 20, varint(0) + varint(HUGE))))
    padding = bytes(len(table) - FOOTER_BYTES - len(metaindex) - len(index))
    places = (len(padding), len(metaindex) - 5), (len(padding) + len(metaindex), len(index) - 5)
    return padding + metaindex + index + footer(*places)


HOSTILE = (with_huge_index, with_huge_block)


def republished(source: Storage, folder: Path) -> Storage:
    """Copy a storage to a folder."""
    assert source.root is not None
    shutil.copytree(source.root, folder)
    return open_storage(folder.as_uri())


def tamper(storage: Storage, dataset: str, change: object) -> None:
    """Change all tables that the newest version of a dataset added, and recompute all hashes."""
    assert callable(change)
    version = published_versions(storage, dataset)[-1]
    list_path = f"{dataset}/input_lists/{version:05}"
    listed = storage.get(list_path).decode()
    directory = re.search(r"# leveldb: (.*)", listed)[1]  # type: ignore[index]
    path = f"{dataset}/leveldbs/{directory}/_MANIFEST.json"
    manifest = orjson.loads(storage.get(path))
    for file in manifest["files"]:
        if file["name"].endswith(".ldb") and file["directory"] == directory:
            place = f"{dataset}/leveldbs/{directory}/{file['name']}"
            content = change(storage.get(place))
            storage.put(place, content)
            file |= {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    content = orjson.dumps(manifest)
    storage.put(path, content)
    listed = re.sub("# manifest sha256: .*", f"# manifest sha256: {hashlib.sha256(content).hexdigest()}", listed)
    storage.put(list_path, listed.encode())
    state = orjson.loads(storage.get(PUBLISHED))
    for leveldb in state["leveldbs"][dataset]:
        if leveldb["path"] == list_path:
            leveldb |= {"size": len(listed), "sha256": hashlib.sha256(listed.encode()).hexdigest()}
    storage.put(PUBLISHED, orjson.dumps(state))
