"""Read the headers of a tar: its members, their names, and the position of their content.

If readers of tars differ, the view of tarfile counts, since pip unpacks with it. If versions of tarfile differ, too,
the archive gets a doubt or counts as corrupt. tarfile applies the headers in front of a member from last to first, and
takes the first invalid header after a member for the end. Here an invalid header is an error.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from zlib import adler32

import msgspec

from pypi_assets.distributions.archives import BLOCK, BadTarError, TarStream, padded
from pypi_assets.distributions.limits import MIB, LimitExceededError
from pypi_assets.distributions.unpacked_tree import Doubts, MemberKind

MAX_EXTENSION_BYTES = MIB
"""The maximum size of a long name, or of one member's pax records."""
MAX_EXTENSIONS = 100
"""The maximum number of long names and pax headers in front of one member."""
MAX_REGIONS = 10_000
"""The maximum number of pieces of a sparse file between its holes."""

_MAX_FILE_BYTES = 16 * 1024**4
"""The maximum size of a sparse file with its holes. Common file systems have no larger files."""

_HEADER = Struct("100s24s12s12s8sc172x16s167x")
_TARGET, _PREFIX = slice(157, 257), slice(345, 500)
"""The fields are name, then mode, user and group, size, time, checksum, kind, and device.

Their places have been the same since 1979. Older headers have zeros in the places of later fields.
"""
_KINDS = {
    **dict.fromkeys((b"0", b"\0", b"7", b"S"), MemberKind.FILE),
    b"1": MemberKind.HARD_LINK,
    b"2": MemberKind.SYMBOLIC_LINK,
    b"5": MemberKind.FOLDER,
}
_WITHOUT_DATA = frozenset((b"1", b"2", b"3", b"4", b"5", b"6"))
"""Links, devices, folders and fifos. No content follows their header, whatever its size field says."""
_FILE, _OLD_FILE, _SPARSE = b"0", b"\0", b"S"
_LONG_NAME, _LONG_LINK, _GLOBAL_PAX = b"L", b"K", b"g"
_PAX = frozenset((b"x", b"X"))
_EXTENSIONS = frozenset((_LONG_NAME, _LONG_LINK, _GLOBAL_PAX, *_PAX))

_PAX_LENGTH = re.compile(rb"([0-9]{1,20}) ")
_DIGITS = re.compile(rb"[0-9]{1,20}")
_MAP = re.compile(rb"[0-9]{1,20}(?:,[0-9]{1,20})*+")
_TIME = re.compile(rb"-?[0-9]{1,15}(?:\.[0-9]{0,30}+)?")
_ONLY_TIME = re.compile(rb"[0-9]{2} mtime=-?[0-9]{1,15}(?:\.[0-9]{0,30}+)?\n")
"""Matches a pax header with a single time record, which Python writes in front of most files."""
_PATH, _LINK_PATH, _SIZE, _MTIME, _CHARSET = b"path", b"linkpath", b"size", b"mtime", b"hdrcharset"
_SPARSE_NAME, _SPARSE_SIZE, _SPARSE_REAL_SIZE = b"GNU.sparse.name", b"GNU.sparse.size", b"GNU.sparse.realsize"
_SPARSE_MAP, _SPARSE_MAJOR, _SPARSE_MINOR = b"GNU.sparse.map", b"GNU.sparse.major", b"GNU.sparse.minor"
_SPARSE_OFFSET, _SPARSE_LENGTH = b"GNU.sparse.offset", b"GNU.sparse.numbytes"
_KEPT_OF_SPARSE_FILES = frozenset(
    (_SPARSE_NAME, _SPARSE_SIZE, _SPARSE_REAL_SIZE, _SPARSE_MAP, _SPARSE_MAJOR, _SPARSE_MINOR)
)
_OF_SPARSE_FILES = _KEPT_OF_SPARSE_FILES | {_SPARSE_OFFSET, _SPARSE_LENGTH}
_KEPT = _KEPT_OF_SPARSE_FILES | {_PATH, _LINK_PATH, _SIZE}
_CHARSETS = frozenset((b"BINARY", b"ISO-IR 10646 2000 UTF-8"))
_SPARSE_HEADER = Struct("386x96sc12s17x")
_SPARSE_EXTENSION = Struct("504sc7x")
"""Both structures have pairs of numbers and a flag for a further extension. The header also has the full size."""
_ZEROS = bytes(BLOCK)
_MAX_TIME = 2**62
_MAX_REMEMBERED = 5000

_SHARED = "global headers set the path or the size of what follows: versions of Python differ"
_MANY_SHARED = f"times more than {MAX_EXTENSIONS} global headers follow each other: Python may not read on"
_MIXED = "members have several extended headers in front of them: readers of tars differ"
_PADDING = "headers go on behind their size: readers of tars differ"
_NO_PATH = "members have an empty path in their extended header: pip refuses it"
_NO_CHARSET = "headers name a character set that Python may not read"
_BAD_TIME = "members have a time that pip may not set"
_OLD_FOLDER = "members with an extended header are folders to some versions of Python, and files to others"
_NO_TEXT = "member names are not UTF-8: wrong bytes are replaced"
_SPARSE_FORMAT = "sparse files name no format that Python reads: it takes them as they are"


class TarMember(msgspec.Struct, gc=False):
    """A member of a tar.

    `start` and `size` describe its content in the tar, and `real_size` is the size of the file. `regions` is the map of
    a sparse file, as a flat list of the offset and size of each piece or as text, and None for other files. With
    `has_map`, the map precedes the content.
    """

    name: str
    kind: MemberKind
    target: str
    start: int
    size: int
    real_size: int
    regions: list[int] | bytes | None = None
    has_map: bool = False


def read_members(tar: TarStream, doubts: Doubts) -> Iterator[TarMember]:
    """Yield each member after its headers. Read or skip its content before taking the next one.

    Raise BadTarError and LimitExceededError.
    """
    shared: dict[bytes, bytes] = {}
    extensions: list[_Extension] = []
    numbers: set[bytes] = set()
    file = MemberKind.FILE
    while (header := tar.read(BLOCK)) and (header[0] or header.strip(b"\0")):
        if len(header) < BLOCK:
            raise tar.ended()
        name, ids, size_field, time, checksum, kind, device = _HEADER.unpack(header)
        try:
            size = int(size_field.rstrip(b"\0 "), 8)
        except ValueError:
            size = _unusual_number(size_field)
        if size < 0 or not _is_intact(header, checksum):
            raise BadTarError(f"a broken header at {tar.position - BLOCK}")
        if time not in numbers:
            if abs(_number(time)) > _MAX_TIME:
                doubts.add(_BAD_TIME)
            if len(numbers) > _MAX_REMEMBERED:
                numbers.clear()
            numbers.add(time)
        if ids not in numbers or device not in numbers:  # they are equal in nearly all headers of a tar
            _check_numbers(ids + device)
            numbers.update((ids, device))
        if kind in _EXTENSIONS:
            _extend(tar, kind, size, shared, extensions, doubts)
            continue
        if kind == _FILE and not shared and (not extensions or extensions == _WITHOUT_EFFECT):  # the usual case
            extensions.clear()
            name = name.partition(b"\0")[0]
            if header[345]:
                name = _text(header[_PREFIX]) + b"/" + name
            if name.isascii():
                text = name.decode()
            else:
                text = name.decode(errors="surrogateescape")
                _check_text(text, doubts)
            yield TarMember(text, file, "", tar.position, size, size)
            continue
        own = _Own(_text(name), kind, size, _text(header[_TARGET]))
        if kind == _OLD_FILE and own.name.endswith(b"/"):
            own.kind = b"5"
            if extensions:
                doubts.add(_OLD_FOLDER)
        if header[345] and kind != _SPARSE:
            own.name = _text(header[_PREFIX]) + b"/" + own.name
        if kind == _SPARSE:
            own.regions, own.real_size = _read_regions(tar, header)
        elif shared:
            own.apply(shared, doubts)
        if extensions:
            own.extend(extensions, doubts)
            extensions = []
        yield own.member(tar.position, doubts)
    if not tar.position:
        raise BadTarError("no byte at all")
    if extensions or tar.position < BLOCK:
        raise tar.ended()


@dataclass(slots=True, eq=False)
class _Extension:
    """A header in front of a member: its text, or its fields combined with the fields of earlier global headers."""

    kind: bytes
    text: bytes = b""
    fields: dict[bytes, bytes] | None = None
    own_keys: frozenset[bytes] = frozenset()
    regions: list[int] | None = None


_NO_FIELDS = _Extension(b"x", b"", {})
_WITHOUT_EFFECT = [_NO_FIELDS]


def _extend(
    tar: TarStream,
    kind: bytes,
    size: int,
    shared: dict[bytes, bytes],
    extensions: list[_Extension],
    doubts: Doubts,
) -> None:
    """Read an extended header, and add it to `extensions` or its fields to `shared`."""
    if size > MAX_EXTENSION_BYTES:
        raise LimitExceededError(f"a tar header is larger than {MAX_EXTENSION_BYTES} bytes")
    content = tar.read_padded(size)
    if kind in _PAX and not shared and len(extensions) < MAX_EXTENSIONS and _is_only_time(content, size):
        extensions.append(_NO_FIELDS)
        return
    if content[size:].strip(b"\0"):
        doubts.add(_PADDING)
    if kind in {_LONG_NAME, _LONG_LINK}:
        extensions.append(_Extension(kind, _text(content)))
    else:
        fields, regions = _pax_fields(content, doubts)
        if kind == _GLOBAL_PAX:
            if not _OF_SPARSE_FILES.isdisjoint(fields):
                raise BadTarError("a global header has the fields of a sparse file")
            if fields:
                doubts.add(_SHARED)
            shared |= fields
            extensions.append(_Extension(kind))
        elif fields or shared:
            extensions.append(_Extension(kind, b"", shared | fields, frozenset(fields), regions))
        else:
            extensions.append(_NO_FIELDS)
    if len(extensions) <= MAX_EXTENSIONS:
        return
    if any(each.kind != _GLOBAL_PAX for each in extensions):
        raise BadTarError(f"more than {MAX_EXTENSIONS} headers for one member before {tar.position}")
    doubts.add(_MANY_SHARED)
    del extensions[1:]


@dataclass(slots=True)
class _Own:
    """A member as its own header describes it, before the headers in front of it are applied."""

    name: bytes
    kind: bytes
    size: int
    target: bytes
    real_size: int | None = None
    regions: list[int] | bytes | None = None
    has_map: bool = False

    def apply(self, fields: dict[bytes, bytes], doubts: Doubts) -> None:
        """Apply the fields of pax headers in order. The size is the file's own and does not move the next member."""
        for key, value in fields.items():
            if key in {_PATH, _SPARSE_NAME}:
                name = value.rstrip(b"/") if key == _PATH else value
                if name:
                    self.name = name
                else:
                    doubts.add(_NO_PATH)
            elif key == _LINK_PATH:
                self.target = value
            elif key in {_SIZE, _SPARSE_SIZE, _SPARSE_REAL_SIZE}:
                self.real_size = _decimal(value)

    def extend(self, extensions: list[_Extension], doubts: Doubts) -> None:
        """Apply the headers in front of the member, the nearest first."""
        pax = [each for each in extensions if each.kind in _PAX]
        long = [each.kind for each in extensions if each.kind in {_LONG_NAME, _LONG_LINK}]
        if len(pax) > 1 or len(set(long)) < len(long) or (pax and long):
            doubts.add(_MIXED)
        for each in reversed(extensions):
            if each.kind == _LONG_NAME:
                self.name = each.text.removesuffix(b"/") if self.kind == b"5" else each.text
            elif each.kind == _LONG_LINK:
                self.target = each.text
            elif each.fields is not None:
                self._extend_by(each, each.fields, doubts)

    def _extend_by(self, header: _Extension, fields: dict[bytes, bytes], doubts: Doubts) -> None:
        is_sparse = not _OF_SPARSE_FILES.isdisjoint(fields)
        if is_sparse:
            if self.kind == _SPARSE or self.regions is not None or self.has_map or _SIZE in fields:
                raise BadTarError("a sparse file with two maps, or with a size of its own")
            if self.kind in _WITHOUT_DATA:
                raise BadTarError("a sparse file that is a folder, a link or a device")
            if _SPARSE_MAP in fields:
                self.regions = fields[_SPARSE_MAP]
            elif _SPARSE_SIZE in fields:
                self.regions = header.regions or []
            elif (fields.get(_SPARSE_MAJOR), fields.get(_SPARSE_MINOR)) == (b"1", b"0"):
                self.has_map = True
            else:
                doubts.add(_SPARSE_FORMAT)
        self.apply(fields, doubts)
        if _SIZE in fields:
            self.size = _decimal(fields[_SIZE])
            if self.kind == _SPARSE or _SIZE not in header.own_keys:
                doubts.add(_SHARED)

    def member(self, start: int, doubts: Doubts) -> TarMember:
        kind = _KINDS.get(self.kind, MemberKind.SPECIAL)
        size = 0 if self.kind in _WITHOUT_DATA else self.size
        name = self.name.rstrip(b"/") if kind is MemberKind.FOLDER else self.name
        text = name.decode(errors="surrogateescape")
        _check_text(text, doubts)
        target = self.target.decode(errors="surrogateescape") if self.target else ""
        real_size = self.size if self.real_size is None else self.real_size
        return TarMember(text, kind, target, start, size, real_size, self.regions, self.has_map)


def _check_text(name: str, doubts: Doubts) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        doubts.add(_NO_TEXT)


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _check_numbers(fields: bytes) -> None:
    """Parse numbers of eight bytes each. tarfile stops at a header in which one of them is invalid."""
    for start in range(0, len(fields), 8):
        _number(fields[start : start + 8])


def _is_intact(header: bytes, checksum: bytes) -> bool:
    """Check whether the checksum is the sum of the header's bytes, signed or unsigned, with blanks in its own place."""
    if header.isascii():  # then the sums stay below the modulus of adler32, which is ten times as fast
        return (adler32(header) & 0xFFFF) - (adler32(checksum) & 0xFFFF) + 8 * 32 == _number(checksum)
    return _number(checksum) in {sum(header) - sum(checksum) + 8 * 32, _signed_sum(header, checksum)}


def _signed_sum(header: bytes, checksum: bytes) -> int:
    return sum(memoryview(header).cast("b")) - sum(memoryview(checksum).cast("b")) + 8 * 32


def _number(field: bytes) -> int:
    """Return a number in octal digits, or in base 256 after a marker byte, as GNU writes large and negative numbers."""
    try:
        return int(field.rstrip(b"\0 "), 8)
    except ValueError:  # rare, so trying first is fastest
        return _unusual_number(field)


def _unusual_number(field: bytes) -> int:
    if field[0] in {0x80, 0xFF}:
        return int.from_bytes(field[1:], "big") - (256 ** (len(field) - 1) if field[0] == 0xFF else 0)
    try:
        return int(_text(field).decode("ascii").strip() or "0", 8)
    except ValueError:
        raise BadTarError(f"no number: {field!r}") from None


def _decimal(digits: bytes) -> int:
    if not _DIGITS.fullmatch(digits):
        raise BadTarError(f"no number: {digits[:20]!r}")
    number = int(digits)
    if number > _MAX_FILE_BYTES:
        raise BadTarError(f"larger than any file: {number}")
    return number


def _is_only_time(content: bytes, size: int) -> bool:
    """Check whether pax records of `size` bytes are a single time record, followed by zeros."""
    return (
        content[size:] == _ZEROS[size:]
        and content[:2] == b"%d" % size
        and _ONLY_TIME.fullmatch(content, 0, size) is not None
    )


def _pax_fields(content: bytes, doubts: Doubts) -> tuple[dict[bytes, bytes], list[int]]:
    """Return the paths and sizes in pax records (`"27 mtime=1700000000.123456\\n"`), and the map of holes."""
    fields = {}
    offsets: list[bytes] = []
    lengths: list[bytes] = []
    at = 0
    charsets = content.count(b"%s=" % _CHARSET)  # some versions of Python search for one before they split the records
    while at < len(content) and content[at]:
        record = _PAX_LENGTH.match(content, at)
        end = at + int(record[1]) if record else 0
        if record is None or end <= record.end() or content[end - 1 : end] != b"\n":
            raise BadTarError("a broken pax header")
        key, equals, value = content[record.end() : end - 1].partition(b"=")
        if not key or not equals:
            raise BadTarError("a broken pax header")
        if key == _MTIME:
            if not _TIME.fullmatch(value):
                doubts.add(_BAD_TIME)
        elif key == _SPARSE_OFFSET:
            offsets.append(value)
        elif key == _SPARSE_LENGTH:
            lengths.append(value)
        elif key in _KEPT:
            fields[key] = value
        elif key == _CHARSET and value in _CHARSETS:
            charsets -= 1
        at = end
    if charsets:
        doubts.add(_NO_CHARSET)
    pairs = max(len(offsets), len(lengths))
    if not pairs:
        return fields, []
    counts = (content.count(b" %s=" % _SPARSE_OFFSET), content.count(b" %s=" % _SPARSE_LENGTH))
    if counts != (pairs, pairs) or len(offsets) != len(lengths):
        raise BadTarError("a sparse file whose map is not in pairs")
    _check_regions(pairs)
    fields.setdefault(_SPARSE_OFFSET, b"")
    regions = [_decimal(each) for pair in zip(offsets, lengths, strict=True) for each in pair]
    return fields, regions


def skip_content(tar: TarStream, member: TarMember) -> None:
    """Skip the content of `member`. Raise BadTarError if it is truncated, or if the map of a sparse file is invalid."""
    if member.has_map:
        _, read = _read_map(tar, member)
        tar.skip(padded(member.size) - read)
    else:
        if isinstance(member.regions, bytes):
            _read_numbers(member.regions)
        tar.skip(padded(member.size))


def content_of(tar: TarStream, member: TarMember) -> bytes:
    """Return the content of `member`, with the holes of a sparse file. `tar` is at its start.

    Raise BadTarError and LimitExceededError.
    """
    regions, read = _read_map(tar, member) if member.has_map else (member.regions, 0)
    content = tar.read_padded(member.size - read)[: member.size - read]
    if isinstance(regions, bytes):
        _check_regions(regions.count(b",") // 2)
        regions = _read_numbers(regions)
    if regions is not None:
        return _with_holes(content, regions, member.real_size)
    if member.real_size > member.size:
        raise BadTarError("a member is larger than what it has in the tar")
    return content[: member.real_size]


def _read_numbers(text: bytes) -> list[int]:
    """Return the numbers of a map in a pax header. Their count is limited by the size of the header."""
    if not _MAP.fullmatch(text):
        raise BadTarError("a sparse file whose map is none")
    return list(map(_decimal, text.split(b",")))


def _read_map(tar: TarStream, member: TarMember) -> tuple[list[int], int]:
    """Return the map before the content of a sparse file, and its size: a count and pairs of numbers, one a line."""
    text = tar.read_whole(BLOCK)
    count = _decimal(text.partition(b"\n")[0]) if b"\n" in text else -1
    _check_regions(count)
    lines = text.count(b"\n")
    pieces = [text]
    while 0 <= lines < 2 * count + 1 and len(pieces) * BLOCK < member.size:
        pieces.append(tar.read_whole(BLOCK))
        lines += pieces[-1].count(b"\n")
    if not 0 <= 2 * count < lines or len(pieces) * BLOCK > padded(member.size):
        raise BadTarError("a sparse file whose map is none")
    return list(map(_decimal, b"".join(pieces).split(b"\n")[1 : 2 * count + 1])), len(pieces) * BLOCK


def _read_regions(tar: TarStream, header: bytes) -> tuple[list[int], int]:
    """Return the offset and size of each region as a flat list, and the size of the file, in GNU's old format."""
    pairs, more, size = _SPARSE_HEADER.unpack(header)
    regions = _numbers(pairs)
    while more != b"\0":
        pairs, more = _SPARSE_EXTENSION.unpack(tar.read_whole(BLOCK))
        numbers = _numbers(pairs)
        if any(length and not offset for offset, length in zip(numbers[::2], numbers[1::2], strict=True)):
            raise BadTarError("a sparse file whose map starts again")
        regions += numbers
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
