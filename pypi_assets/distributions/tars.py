"""Takes out of a tar what records are made of: the names of its members and its small metadata files, in one pass.

Where readers of tars differ, tarfile's view counts, since installers unpack with it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct
from zlib import adler32

from pypi_assets.distributions.archives import SafeNames, keep
from pypi_assets.distributions.build_scripts import is_build_script
from pypi_assets.distributions.extract import Extract, printable
from pypi_assets.distributions.inflating import BrokenDataError, inflated
from pypi_assets.distributions.limits import MIB, Budget, LimitExceededError
from pypi_assets.distributions.record import ErrorKind
from pypi_assets.distributions.sources import SequentialSource

MAX_EXTENSION_BYTES = MIB
"""Of a long name or of one member's pax records."""
MAX_EXTENSIONS = 100
"""Long names and pax headers in front of one member."""
MAX_REGIONS = 10_000
"""Pieces of a sparse file between its holes."""

_BLOCK = 512
_HEADER = Struct("100s24x12s12x8sc188x155s12x")
"""Name, size, checksum, kind and prefix: at the same places since 1979, with zeros for a prefix then."""
_REGULAR = frozenset((b"0", b"\0", b"7", b"S"))
_LINKS = frozenset((b"1", b"2"))
_WITHOUT_DATA = frozenset((b"1", b"2", b"3", b"4", b"5", b"6"))
"""Links, devices, folders and fifos: nothing follows their header, whatever size it has."""
_FOLDER, _SPARSE = b"5", b"S"
_LONG_NAME, _LONG_LINK, _GLOBAL_PAX = b"L", b"K", b"g"
_EXTENSIONS = frozenset((_LONG_NAME, _LONG_LINK, _GLOBAL_PAX, b"x", b"X"))

_PAX_RECORD = re.compile(rb"(\d{1,20}) ([^=\n]++)=")
_DIGITS = re.compile(rb"[0-9]{1,20}")
_PATH, _SIZE = b"path", b"size"
_SPARSE_FIELDS = b"GNU.sparse."
_SPARSE_MAP = b"GNU.sparse.map"
_SPARSE_PAIR = frozenset((b"GNU.sparse.offset", b"GNU.sparse.numbytes"))
_SPARSE_HEADER = Struct("386x96sc12s17x")
_SPARSE_EXTENSION = Struct("504sc7x")
"""Both hold pairs of numbers, and whether an extension follows; the header the size with all holes too."""


class BadTarError(Exception):
    """What is no tar, or is broken in the middle, or ends too early; the text has the place."""


@dataclass(slots=True)
class _Member:
    """`size` counts the bytes that follow in the tar; `regions` is a sparse file's map and size, of GNU's old kind."""

    name: str
    kind: bytes
    size: int
    pax: Mapping[bytes, bytes]
    regions: tuple[list[int], int] | None


def extract_tar(source: SequentialSource, wanted: Callable[[str], bool], budget: Budget) -> Extract:
    """The names of all files in the tar, and the content of the `wanted` ones; of core metadata only the headers.

    Reads what POSIX (ustar, pax), GNU (long names, sparse files) and Unix 7 write. Links count as files without
    content. Raises SourceError.
    """
    extract = Extract()
    members = SafeNames(extract, budget)
    tar = _Stream(inflated(source, budget, extract.notes))
    try:
        for member in _members(tar):
            is_regular = member.kind in _REGULAR
            is_file = (is_regular or member.kind in _LINKS) and not member.name.endswith("/")
            name = members.add(member.name, tar.position, is_file=is_file)
            if not (is_regular and name is not None and wanted(name)):
                tar.skip(_padded(member.size))
            elif not is_build_script(name) or budget.has_room_for_script(member.size):
                keep(extract, name, _read(tar, member, budget), budget)
            else:
                tar.skip(_padded(member.size))
        tar.skip_rest()
    except BrokenDataError as error:
        extract.fail(ErrorKind.CORRUPT_ARCHIVE, printable(str(error)))
    except (BadTarError, LimitExceededError) as error:
        extract.fail_with(error)
    members.finish()
    return extract


class _Stream:
    """Pieces of any size as one stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._piece = b""
        self._before = 0
        self._at = 0

    @property
    def position(self) -> int:
        return self._before + self._at

    def read(self, size: int) -> bytes:
        """`size` bytes, fewer only at the end."""
        content = self._piece[self._at : self._at + size]
        self._at += len(content)
        if len(content) == size:
            return content
        collected = bytearray(content)
        while len(collected) < size and self._next():
            self._at = min(size - len(collected), len(self._piece))
            collected += self._piece[: self._at]
        return bytes(collected)

    def read_whole(self, size: int) -> bytes:
        """`size` bytes and not what pads them to whole blocks. Raises BadTarError where there are fewer."""
        padded = _padded(size)
        content = self.read(padded)
        if len(content) < padded:
            raise self.ended()
        return content[:size]

    def skip(self, size: int) -> None:
        """Raises BadTarError where there are fewer bytes."""
        self._at += size
        while self._at > len(self._piece):
            beyond = self._at - len(self._piece)
            self._at = len(self._piece)
            if not self._next():
                raise self.ended()
            self._at = beyond

    def skip_rest(self) -> None:
        while self._next():
            pass

    def ended(self) -> BadTarError:
        return BadTarError(f"the tar ends at {self.position}, in the middle of a member")

    def _next(self) -> bool:
        self._before += len(self._piece)
        self._at = 0
        self._piece = next(self._pieces, b"")
        return bool(self._piece)


def _members(tar: _Stream) -> Iterator[_Member]:
    """Each member, after its headers; the next one is taken once its content is read or skipped."""
    shared: dict[bytes, bytes] = {}
    own: dict[bytes, bytes] = {}
    extensions = 0
    while (header := tar.read(_BLOCK)).strip(b"\0"):
        if len(header) < _BLOCK:
            raise tar.ended()
        name, size_field, checksum, kind, prefix = _HEADER.unpack(header)
        size = _number(size_field)
        if size < 0 or not _is_intact(header, checksum):
            raise BadTarError(f"a broken header at {tar.position - _BLOCK}")
        if kind in _EXTENSIONS:
            if size > MAX_EXTENSION_BYTES:
                raise LimitExceededError(f"a tar header is larger than {MAX_EXTENSION_BYTES} bytes")
            content = tar.read_whole(size)
            if kind == _GLOBAL_PAX:
                shared |= _pax_fields(content)
                continue
            extensions += 1
            if extensions > MAX_EXTENSIONS:
                raise BadTarError(f"more than {MAX_EXTENSIONS} headers for one member before {tar.position}")
            if kind == _LONG_NAME:
                own.setdefault(_PATH, _text(content))
            elif kind != _LONG_LINK:
                own = _pax_fields(content) | own
            continue
        name = _text(name)
        if kind == b"\0" and name.endswith(b"/"):
            kind = _FOLDER
        if prefix[0] and kind != _SPARSE:
            name = _text(prefix) + b"/" + name
        pax = shared | own
        if pax:
            name = pax.get(b"GNU.sparse.name") or pax.get(_PATH) or name
            size = _decimal(own[_SIZE]) if _SIZE in own else size  # one for all members moves none of them
        size = 0 if kind in _WITHOUT_DATA else size
        regions = _read_regions(tar, header) if kind == _SPARSE else None
        yield _Member(name.decode(errors="replace"), kind, size, pax, regions)
        own, extensions = {}, 0
    if not tar.position:
        raise BadTarError("no byte at all")
    if extensions:
        raise tar.ended()


def _padded(size: int) -> int:
    return size + -size % _BLOCK


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _is_intact(header: bytes, checksum: bytes) -> bool:
    """Whether the checksum is the sum of the header's bytes, or of its signed bytes, itself taken as blanks."""
    difference = _number(checksum) + sum(checksum) - 8 * 32
    if header.isascii():  # then the sum is too small for the modulus of adler32, which is ten times as quick
        return adler32(header) & 0xFFFF == difference + 1
    return difference == sum(header) or _number(checksum) == _signed_sum(header, checksum)


def _signed_sum(header: bytes, checksum: bytes) -> int:
    return sum(memoryview(header).cast("b")) - sum(memoryview(checksum).cast("b")) + 8 * 32


def _number(field: bytes) -> int:
    """A number in octal digits, or as GNU writes large and negative ones, in base 256 after a set bit."""
    try:
        return int(field.rstrip(b"\0 "), 8)
    except ValueError:  # hardly ever, so that this way round is the quickest
        return _unusual_number(field)


def _unusual_number(field: bytes) -> int:
    if field[0] & 0x80:
        sign = (field[0] & 0x40) << 1
        return int.from_bytes(bytes([field[0] & 0x7F | sign]) + field[1:], "big", signed=True)
    try:
        return int(_text(field).strip() or b"0", 8)
    except ValueError:
        raise BadTarError(f"no number: {field!r}") from None


def _decimal(digits: bytes) -> int:
    if not _DIGITS.fullmatch(digits):
        raise BadTarError(f"no number: {digits[:20]!r}")
    return int(digits)


def _pax_fields(content: bytes) -> dict[bytes, bytes]:
    """Of pax records (`"27 mtime=1700000000.123456\\n"`) the paths and sizes of members, and their map of holes."""
    fields = {}
    pairs = []
    at = 0
    while at < len(content) and content[at]:
        record = _PAX_RECORD.match(content, at)
        end = at + int(record[1]) if record else 0
        if record is None or end <= record.end() or content[end - 1 : end] != b"\n":
            raise BadTarError("a broken pax header")
        key = record[2]
        if key in _SPARSE_PAIR:
            pairs.append(content[record.end() : end - 1])
        elif key in (_PATH, _SIZE) or key.startswith(_SPARSE_FIELDS):
            fields[key] = content[record.end() : end - 1]
        at = end
    if pairs:
        fields[_SPARSE_MAP] = b",".join(pairs)
    return fields


def _read(tar: _Stream, member: _Member, budget: Budget) -> bytes:
    """The content of `member`, with the holes of a sparse file."""
    regions, size = member.regions or (None, member.size)
    for field in (b"GNU.sparse.size", b"GNU.sparse.realsize"):
        size = _decimal(member.pax.get(field, b"%d" % size))
    budget.count_wanted(member.name, max(member.size, size))
    content = tar.read_whole(member.size)
    if member.pax.get(b"GNU.sparse.major") == b"1":
        count, _, rest = content.partition(b"\n")
        _check_regions(_decimal(count))
        digits = rest.split(b"\n", 2 * _decimal(count))[:-1]
        start = len(count) + 1 + sum(map(len, digits)) + len(digits)
        regions, content = list(map(_decimal, digits)), content[_padded(start) :]
    elif _SPARSE_MAP in member.pax:
        _check_regions(member.pax[_SPARSE_MAP].count(b",") // 2)
        regions = list(map(_decimal, member.pax[_SPARSE_MAP].split(b",")))
    return content if regions is None else _with_holes(content, regions, size)


def _read_regions(tar: _Stream, header: bytes) -> tuple[list[int], int]:
    """Offset and size of each region, flat, and the size of the file: GNU's old kind, before the content."""
    pairs, more, size = _SPARSE_HEADER.unpack(header)
    regions = _numbers(pairs)
    while more != b"\0":
        pairs, more = _SPARSE_EXTENSION.unpack(tar.read_whole(_BLOCK))
        regions += _numbers(pairs)
        _check_regions(len(regions) // 2)
    return regions, _number(size)


def _numbers(fields: bytes) -> list[int]:
    return [_number(fields[start : start + 12]) for start in range(0, len(fields), 12)]


def _check_regions(count: int) -> None:
    if count > MAX_REGIONS:
        raise LimitExceededError(f"a sparse file of more than {MAX_REGIONS} pieces")


def _with_holes(content: bytes, regions: list[int], size: int) -> bytes:
    whole = bytearray(size)
    start = 0
    for offset, length in zip(regions[::2], regions[1::2], strict=False):
        if min(offset, length) < 0 or offset + length > size or start + length > len(content):
            raise BadTarError("a sparse file whose map does not fit")
        whole[offset : offset + length] = content[start : start + length]
        start += length
    return bytes(whole)
