"""Which kind of archive an sdist is: by its name, as pip decides, and by its content where that is another one."""

from pypi_assets.characters import lower
from pypi_assets.distributions.record import AMBIGUOUS
from pypi_assets.distributions.sources import TAIL_BYTES

START_BYTES = 512
_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
_ZIP_END, _ZIP_END_BYTES = b"PK\x05\x06", 22
_GZIP, _BZIP2, _XZ = "gzip", "bzip2", "xz"
_COMPRESSIONS = {b"\x1f\x8b": _GZIP, b"BZh": _BZIP2, b"\xfd7zXZ\0": _XZ}
_UNREAD_COMPRESSIONS = {b"\x1f\x9d": "compress", b"\x28\xb5\x2f\xfd": "zstd", b"7z\xbc\xaf": "7z", b"Rar!": "rar"}
_BY_NAME = {
    **dict.fromkeys((".tar.gz", ".tgz"), _GZIP),
    **dict.fromkeys((".tar.bz2", ".tbz"), _BZIP2),
    **dict.fromkeys((".tar.xz", ".txz", ".tlz", ".tar.lz", ".tar.lzma"), _XZ),
}
_PLAIN_TAR_MAGIC = slice(257, 262)
_IS_ZIP = "its name is a tar's and it is a zip: older versions of pip unpack it, newer ones refuse it"
_ENDS_IN_ZIP = "it is a tar that ends like a zip: older versions of pip unpack the zip, newer ones the tar"
_STARTS_AS_TAR = "it is a zip that starts like a tar: pip unpacks the zip"
_IS_TAR = "its name is a zip's and it is a tar: pip refuses it"
_OTHER_COMPRESSION = "it is not compressed as its name has it: pip refuses it"


def unread_compression(start: bytes) -> str | None:
    """The name of a compression that no reader here knows, by the first bytes of a file."""
    return _UNREAD_COMPRESSIONS.get(start[:4]) or _UNREAD_COMPRESSIONS.get(start[:2])


def is_tar(start: bytes) -> bool:
    """Whether the first bytes are those of a compressed file or of a tar."""
    return _compression(start) is not None or start[_PLAIN_TAR_MAGIC] == b"ustar"


def is_read_as_tar(filename: str, start: bytes) -> bool:
    """Whether a file is read as a tar from its start to its end: not where its name or its first bytes are a zip's."""
    return not lower(filename).endswith(".zip") and not start.startswith(_ZIP_STARTS)


def ends_in_zip(tail: bytes) -> bool:
    """Whether Python takes a file that ends in `tail` for a zip."""
    tail = tail[-TAIL_BYTES:]
    if tail[-_ZIP_END_BYTES:].startswith(_ZIP_END) and tail.endswith(b"\0\0"):
        return True
    return 0 <= tail.rfind(_ZIP_END) <= len(tail) - _ZIP_END_BYTES


def kind_notes(filename: str, start: bytes, tail: bytes) -> list[str]:
    """What is doubtful about the kind of an sdist, by its name, its first bytes and its last ones."""
    name = lower(filename)
    compression = _compression(start)
    if name.endswith(".zip"):
        problem = None
        if is_tar(start):
            problem = _STARTS_AS_TAR if ends_in_zip(tail) else _IS_TAR
    elif start.startswith(_ZIP_STARTS):
        problem = _IS_ZIP
    elif ends_in_zip(tail):
        problem = _ENDS_IN_ZIP
    else:
        expected = next((by_name for suffix, by_name in _BY_NAME.items() if name.endswith(suffix)), compression)
        problem = _OTHER_COMPRESSION if compression != expected else None
    return [f"{AMBIGUOUS} {problem}"] if problem else []


def _compression(start: bytes) -> str | None:
    return next((name for magic, name in _COMPRESSIONS.items() if start.startswith(magic)), None)
