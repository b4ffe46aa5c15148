"""Determine where pip installs the members of a wheel, and check WHEEL, RECORD and METADATA as pip does."""

import re
from collections.abc import Iterable, Iterator

from pypi_assets.characters import is_digits, is_printable, printable
from pypi_assets.distributions.archives import SafeNames, is_odd, keep
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import Budget
from pypi_assets.distributions.members import Folder
from pypi_assets.distributions.metadata import decode_text, header_fields, one_line
from pypi_assets.distributions.record import AMBIGUOUS, ErrorKind

SCHEMES = frozenset({"purelib", "platlib", "headers", "scripts", "data"})
"""The possible folders in a `.data` folder. pip rejects a wheel with any other."""
SITE_SCHEMES = frozenset({"purelib", "platlib"})
EXACT_FILES = frozenset({"METADATA", "WHEEL", "RECORD", "entry_points.txt", "PKG-INFO", "requires.txt"})
"""The files that pip reads in the only `.dist-info` folder."""
_DIST_INFO, _DATA = ".dist-info", ".data"
_MAX_PART_BYTES = 255
"""The maximum length of a file's or folder's name on all usual file systems."""
_SHOWN = 3


class RefusedNameError(Exception):
    """pip rejects a wheel with such a member. The message is the reason, in a form for counting members."""


def destination(written: str) -> str:
    """Return where pip installs the file with this name, as its normalized path in the wheel.

    This is a path relative to site-packages, or `NAME.data/SCHEME/` with a path in it. Raise RefusedNameError if pip
    rejects the name, or if the result depends on the folders above site-packages.

    >>> destination("x.data/purelib/demo/../evil.py")
    'x.data/purelib/evil.py'
    """
    if written.startswith("/"):
        raise RefusedNameError("lead out of the archive")
    top = written.partition("/")[0]
    parts = normal_parts(written)
    if top.endswith(_DATA):
        if len(parts) < 3 or parts[0] == "..":
            is_outside = ".." in written.split("/")
            raise RefusedNameError(
                "lead out of the archive's .data folder" if is_outside else "lie in no scheme of a .data folder"
            )
        if parts[1] not in SCHEMES:
            raise RefusedNameError("lie in an unknown scheme of a .data folder")
        return "/".join((top, *parts[1:]))
    if parts[:1] == [".."]:
        raise RefusedNameError("lead out of the archive")
    if not parts:
        raise RefusedNameError("have no name of a file")
    return "/".join(parts)


def normal_parts(path: str) -> list[str]:
    """Return the parts of a relative path as `os.path.normpath` leaves them, including `..` at the start."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return parts


def site_folder(folder: str) -> str | None:
    """Return where files of this wheel folder are installed below site-packages, or None if they are not.

    Of `*.data`, only purelib and platlib are installed there. The result is also None for `.dist-info`, which has no
    modules.
    """
    if ".d" not in folder:
        return folder
    top, _, rest = folder.partition("/")
    if top.endswith(_DATA):
        scheme, _, rest = rest.partition("/")
        return rest if scheme in SITE_SCHEMES else None
    return None if top.endswith(_DIST_INFO) else folder


class WheelNames(SafeNames):
    """Collects the names of a wheel's files by destination. The last of several members counts, as in pip.

    Members that pip rejects, or would install over files of the `.dist-info` folder, are skipped with a note.
    """

    def __init__(self, extract: Extract, budget: Budget) -> None:
        super().__init__(extract, budget)
        self._wheel = extract
        self._limits = budget
        self._folders: dict[str, None] = {}  # top folders, as written, of names that are not a destination
        self._refused: dict[str, list[str]] = {}
        self._literal: list[str] = []
        self._other_spellings: list[str] = []
        self._over_metadata: list[str] = []

    def add(self, written: str, place: int, *, is_file: bool) -> str | None:
        """Add a name and return its destination, or None for folders and skipped names."""
        self._limits.count_member(written)
        if not is_file:
            return None
        name = written
        if is_odd(written):  # all others are unchanged
            try:
                name = destination(written)
            except RefusedNameError as refusal:
                self._refuse(str(refusal), written)
                return None
        if name != written:
            self._note_spelling(written)
            self._folders[written.partition("/")[0]] = None
            top, new_top = written.partition("/")[0], name.partition("/")[0]
            if new_top.endswith(_DIST_INFO):
                self._over_metadata.append(written)
                return None
            if new_top.endswith(_DATA) and new_top != top:
                self._literal.append(written)
                return None
        self._repeated += name in self.places
        self.places[name] = place
        return name

    def add_all(self, names: list[str], places: list[int]) -> None:
        """Add `names`. Names that end with `/` are folders."""
        before = len(self.places)
        super().add_all(names, places)
        if len(self.places) - before < len(names):
            for name in [name for name in names if _DIST_INFO in name]:
                cut = name.partition("\0")[0]
                if cut.endswith("/"):
                    self._folders[cut.partition("/")[0]] = None
                    self._note_spelling(cut)

    def finish(self) -> None:
        """Store the names in the extract, with notes and errors about them."""
        super().finish()
        self._check_tops()
        notes = self._wheel.notes
        for reason, names in self._refused.items():
            notes.append(f"{AMBIGUOUS} pip refuses it: {len(names)} member names that {reason}: {_some(names)}")
        if self._literal:
            notes.append(
                f"{AMBIGUOUS} pip takes {len(self._literal)} member names in .data folders as they are written,"
                f" for no scheme: {_some(self._literal)}"
            )
        if self._over_metadata:
            notes.append(
                f"{AMBIGUOUS} {len(self._over_metadata)} members are installed into a .dist-info folder,"
                f" and never resolved from: {_some(self._over_metadata)}"
            )
        if self._other_spellings:
            self._wheel.fail(
                ErrorKind.BAD_METADATA,
                f"{AMBIGUOUS} versions of pip read different files, since names are spelled in two ways:"
                f" {_some(self._other_spellings)}",
            )
        if long := _long_parts(self._wheel.members, self._limits.longest_name):
            notes.append(f"{AMBIGUOUS} pip refuses it on usual file systems: names in {long} folders are too long")

    def _refuse(self, reason: str, written: str) -> None:
        self._refused.setdefault(reason, []).append(written)

    def _note_spelling(self, written: str) -> None:
        top, _, path = written.partition("/")
        if top.endswith(_DIST_INFO) and _is_other_spelling(path):
            self._other_spellings.append(written)

    def _check_tops(self) -> None:
        """Check the names at the root. pip counts each `.dist-info`, even if it is a file or an empty folder."""
        members = self._wheel.members
        dist_infos = {top for top in self._folders if top.endswith(_DIST_INFO)}
        with_files: set[str] = set()
        for folder in [folder for folder in members if ".d" in folder]:
            top, _, path = folder.partition("/")
            if top.endswith(_DIST_INFO):
                with_files.add(top)
            elif top.endswith(_DATA) and path.partition("/")[0] not in SCHEMES:
                reason = "lie in an unknown scheme of a .data folder" if path else "lie in no scheme of a .data folder"
                for name in members.pop(folder).names:
                    self._refuse(reason, f"{folder}/{name}")
        root = members.get("")
        if root is not None and ".d" in root.others:
            dist_infos |= {name for name in root.other_names if name.endswith(_DIST_INFO)}
            data = [name for name in root.other_names if name.endswith(_DATA)]
            for name in data:
                self._refuse("lie in no scheme of a .data folder", name)
            if data:
                members[""] = Folder(root.sources, "".join(f"{each}/" for each in root.other_names if each not in data))
        tops = dist_infos | with_files
        if len(tops) > 1 and tops != with_files:
            text = f"pip refuses it: {len(tops)} .dist-info names: {_some(sorted(tops))}"
            self._wheel.fail(ErrorKind.BAD_METADATA, text)


def _is_other_spelling(path: str) -> bool:
    """Check whether pip on Python 3.11 or newer takes this path in .dist-info for another spelling of EXACT_FILES."""
    if not path.endswith(("/", "/.")) and "./" not in path and "//" not in path:
        return False
    if path.startswith("/"):
        return False
    return "/".join(part for part in path.split("/") if part not in {"", "."}) in EXACT_FILES


def _long_parts(members: dict[str, Folder], longest: int) -> int:
    """Return the number of folders that contain, or have, a name of more than _MAX_PART_BYTES."""
    if longest * 4 <= _MAX_PART_BYTES:
        return 0
    texts = (f"{folder}/{inside.sources.replace('/', '.py/')}{inside.others}" for folder, inside in members.items())
    if longest <= _MAX_PART_BYTES:
        if all(
            folder.isascii() and each.sources.isascii() and each.others.isascii() for folder, each in members.items()
        ):
            return 0
        texts = (text for text in texts if not text.isascii())
    return sum(any(len(part) * 4 > _MAX_PART_BYTES and _is_long(part) for part in text.split("/")) for text in texts)


def _is_long(part: str) -> bool:
    return len(part.encode()) > _MAX_PART_BYTES


def _some(names: Iterable[str]) -> str:
    """Return the first few names, for a note."""
    listed = list(names)
    return printable(", ".join(listed[:_SHOWN]), 150)


RECORD = ".dist-info/RECORD"
MAX_RECORD_BYTES = 1024
"""The compressed size up to which RECORD is checked, if it lies in the part of the file that is read first.

Larger ones would cost too much time.
"""
MAX_RECORD_SIZE = 256 * 1024
"""The maximum claimed inflated size. Lines of a few characters take twenty times their size in memory."""
_USUAL_WHEEL = re.compile(rb"Wheel-Version: 1\.0\n(?![ \t])")
_MAX_DIGITS = 4300
"""The maximum number of digits of a number that Python accepts."""
_BOM = b"\xef\xbb\xbf"
_FOLDED_REQUIREMENT = re.compile(rb"\n(?i:requires-dist):[ \t]*+[^\s][^\n]*+\n[ \t]++[^\s]", re.ASCII)
_LINE_ENDS = (b"\r", b"\x0b", b"\x0c", b"\x1c", b"\x1d", b"\x1e", b"\xc2\x85", b"\xe2\x80")
_MAX_FIELD = 131_072
"""The longest field that Python's csv module accepts."""
_NAME = re.compile(rb"\n(?i:name):[ \t]*+([^\n]*+)\n([ \t]?)", re.ASCII)
_VALID_NAME = re.compile(rb"[A-Za-z0-9._-]++")
_DEPENDENCY = re.compile(rb"\n(?i:requires-dist|provides-extra):([^\n]*+)", re.ASCII)
_USUAL_BYTES = bytes([*b"\t\n", *range(0x20, 0x7F)])
_DECODED = (".dist-info/METADATA", ".dist-info/requires.txt")
_RUN_LINE = ("import ", "import\t")


def keep_member(extract: Extract, name: str, content: bytes, budget: Budget) -> None:
    """Add a wanted file to `extract`, and notes on problems that its stored part hides. Raise LimitExceededError.

    WHEEL is stored only if pip rejects it, and RECORD never.
    """
    if name.endswith(RECORD):
        if problem := record_problem(content):
            extract.notes.append(f"{AMBIGUOUS} pip refuses it: {problem}")
        return
    if name.endswith(".dist-info/WHEEL") and wheel_problem(content) is None:
        return
    if name.endswith(_DECODED) and not is_utf8(content):
        extract.notes.append(f"{AMBIGUOUS} pip refuses it: {name.rpartition('/')[2]} is not UTF-8")
    keep(extract, name, content, budget)


def is_utf8(content: bytes) -> bool:
    """Check whether `content` is UTF-8 text, with or without a byte order mark."""
    try:
        return content.isascii() or bool(content.decode())
    except UnicodeDecodeError:
        return False


def wheel_problem(content: bytes) -> str | None:
    """Return why pip rejects a wheel with this WHEEL file, or None if it accepts it."""
    if _USUAL_WHEEL.match(content) and content.isascii():
        return None
    if not is_utf8(content):
        return "WHEEL is not UTF-8"
    version = header_fields(content.decode()).get("wheel-version", [""])[0].strip()
    numbers = version.split(".")
    if not all(map(is_digits, numbers)) or max(map(len, numbers)) > _MAX_DIGITS:
        return "WHEEL has no Wheel-Version that all readers accept"
    return None if numbers[0].lstrip("0") in {"", "1"} else f"Wheel-Version is {printable(one_line(version), 20)}"


def record_problem(content: bytes) -> str | None:
    """Return why pip rejects a wheel with this RECORD file, or None if it accepts it."""
    if not content.translate(None, _USUAL_BYTES) and len(content) <= _MAX_FIELD and b"\n\n" not in content:
        return "RECORD has a blank line" if content.startswith(b"\n") else None
    if not is_utf8(content):
        return "RECORD is not UTF-8"
    is_odd = content.startswith(b"\n") or b"\n\n" in content or any(each in content for each in _LINE_ENDS)
    if is_odd and not all(content.decode().splitlines()):
        return "RECORD has a blank line"
    if len(content) > _MAX_FIELD and max(map(len, content.decode().splitlines())) > _MAX_FIELD:
        return "RECORD has a line that is too long"
    return None


def metadata_problems(content: bytes) -> Iterator[str]:
    """Yield further reasons why pip rejects a wheel whose METADATA starts with these headers, besides wrong fields."""
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if _FOLDED_REQUIREMENT.search(b"\n" + content):
        yield "a requirement in METADATA goes on in the next line"
    if (name := _NAME.search(b"\n" + content)) and (name[2] or name[1] != name[1].strip()):
        yield "Name in METADATA has blanks behind it, or goes on in the next line"
    elif name and name[1] and not _VALID_NAME.fullmatch(name[1]):
        yield "Name in METADATA has characters that none can have"
    if content.translate(None, _USUAL_BYTES):
        values = (
            match[1].decode(errors="replace").replace("\t", " ") for match in _DEPENDENCY.finditer(b"\n" + content)
        )
        if not all(is_printable(value.strip()) for value in values):
            yield "a requirement or an extra in METADATA has characters that none can have"
    if b"\0" in content:
        yield "METADATA has NUL bytes"


def has_bom(content: bytes) -> bool:
    """Check whether a byte order mark hides the first line from all tools that parse headers like Python."""
    return content.startswith(_BOM)


def start_up_calls(content: bytes) -> list[str]:
    """Return the entry points in a `.start` file, one `module:callable` a line. Python calls them at each start."""
    lines = [line.strip() for line in decode_text(content, "")[0].splitlines()]
    return [one_line(line) for line in lines if line and not line.startswith("#")]


def start_up_lines(content: bytes) -> tuple[bool, list[str]]:
    """Return whether a `.pth` file has code that Python runs at each start, and the paths that it adds, as written."""
    lines = decode_text(content, "")[0].splitlines()
    lines = [line for line in lines if line.strip() and not line.startswith("#")]
    return any(line.startswith(_RUN_LINE) for line in lines), [
        line.rstrip() for line in lines if not line.startswith(_RUN_LINE)
    ]
