"""The small files of a wheel that pip reads by exact name, as pip reads them: WHEEL, and METADATA's encoding and odd
fields; and `.pth` files, as Python reads them when it starts. For entry_points.txt see installed_scripts.
"""

import re
from collections.abc import Iterator

from pypi_assets.characters import is_digits, is_printable
from pypi_assets.distributions.archives import keep
from pypi_assets.distributions.extract import Extract, printable
from pypi_assets.distributions.limits import Budget
from pypi_assets.distributions.metadata import decode_text, header_fields, one_line
from pypi_assets.distributions.record import AMBIGUOUS

RECORD = ".dist-info/RECORD"
MAX_RECORD_BYTES = 1024
"""Compressed: only such a one is looked into, where it lies in what is read first. A larger one costs too much time."""
MAX_RECORD_SIZE = 256 * 1024
"""Inflated, by its claim: lines of a few characters take twenty times their size."""
_USUAL_WHEEL = re.compile(rb"Wheel-Version: 1\.0\n(?![ \t])")
_MAX_DIGITS = 4300
"""Of a number that Python reads."""
_BOM = b"\xef\xbb\xbf"
_FOLDED_REQUIREMENT = re.compile(rb"\n(?i:requires-dist):[ \t]*+[^\s][^\n]*+\n[ \t]++[^\s]", re.ASCII)
_LINE_ENDS = (b"\r", b"\x0b", b"\x0c", b"\x1c", b"\x1d", b"\x1e", b"\xc2\x85", b"\xe2\x80")
_MAX_FIELD = 131_072
"""What Python's csv module reads."""
_NAME = re.compile(rb"\n(?i:name):[ \t]*+([^\n]*+)\n([ \t]?)", re.ASCII)
_VALID_NAME = re.compile(rb"[A-Za-z0-9._-]++")
_DEPENDENCY = re.compile(rb"\n(?i:requires-dist|provides-extra):([^\n]*+)", re.ASCII)
_USUAL_BYTES = bytes([*b"\t\n", *range(0x20, 0x7F)])
_DECODED = (".dist-info/METADATA", ".dist-info/requires.txt")
_RUN_LINE = ("import ", "import\t")


def keep_member(extract: Extract, name: str, content: bytes, budget: Budget) -> None:
    """Adds a wanted file to `extract`, and notes what is in no part of it that is kept. Raises LimitExceededError.

    WHEEL is kept only where pip refuses it, and RECORD never.
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
    """Whether `content` is text in UTF-8, with or without a byte order mark."""
    try:
        return content.isascii() or bool(content.decode())
    except UnicodeDecodeError:
        return False


def wheel_problem(content: bytes) -> str | None:
    """Why pip refuses a wheel with this WHEEL file; None where it does not."""
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
    """Why pip refuses a wheel with this RECORD file; None where it does not."""
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
    """Why pip refuses a wheel whose METADATA starts with these headers, in addition to wrong fields."""
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
            found[1].decode(errors="replace").replace("\t", " ") for found in _DEPENDENCY.finditer(b"\n" + content)
        )
        if not all(is_printable(value.strip()) for value in values):
            yield "a requirement or an extra in METADATA has characters that none can have"
    if b"\0" in content:
        yield "METADATA has NUL bytes"


def has_bom(content: bytes) -> bool:
    """Whether a byte order mark hides the first line from all who read headers as Python does."""
    return content.startswith(_BOM)


def start_up_calls(content: bytes) -> list[str]:
    """The entry points that a `.start` file names, `module:callable` in each line, which Python calls at each start."""
    lines = [line.strip() for line in decode_text(content, "")[0].splitlines()]
    return [one_line(line) for line in lines if line and not line.startswith("#")]


def start_up_lines(content: bytes) -> tuple[bool, list[str]]:
    """Whether a `.pth` file has code, which runs at each start of Python, and the paths that it adds, as written."""
    lines = decode_text(content, "")[0].splitlines()
    lines = [line for line in lines if line.strip() and not line.startswith("#")]
    return any(line.startswith(_RUN_LINE) for line in lines), [
        line.rstrip() for line in lines if not line.startswith(_RUN_LINE)
    ]
