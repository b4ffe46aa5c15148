"""The small files of a wheel that pip reads by exact name, as pip reads them: WHEEL, METADATA's encoding,
entry_points.txt; and `.pth` files, as Python reads them when it starts.
"""

import re
from collections.abc import Iterator, Mapping

from pypi_assets.characters import is_digits, is_printable
from pypi_assets.distributions.archives import keep
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import Budget
from pypi_assets.distributions.metadata import decode_text, header_fields, one_line
from pypi_assets.distributions.record import AMBIGUOUS

_USUAL_WHEEL = b"Wheel-Version: 1.0\n"
_BOM = b"\xef\xbb\xbf"
_FOLDED_REQUIREMENT = re.compile(rb"\n(?i:requires-dist):[ \t]*+[^\s][^\n]*+\n[ \t]++[^\s]", re.ASCII)
_SCRIPT_GROUPS = ("console_scripts", "gui_scripts")
_RUN_LINE = ("import ", "import\t")


def keep_member(extract: Extract, name: str, content: bytes, budget: Budget) -> None:
    """Adds a wanted file to `extract`, and notes what is in no part of it that is kept. Raises LimitExceededError.

    WHEEL is kept only where pip refuses it.
    """
    if name.endswith(".dist-info/WHEEL") and wheel_problem(content) is None:
        return
    if name.endswith(".dist-info/METADATA") and not _is_utf8(content):
        extract.notes.append(f"{AMBIGUOUS} pip refuses it: METADATA is not UTF-8")
    keep(extract, name, content, budget)


def _is_utf8(content: bytes) -> bool:
    try:
        return content.isascii() or bool(content.decode())
    except UnicodeDecodeError:
        return False


def wheel_problem(content: bytes) -> str | None:
    """Why pip refuses a wheel with this WHEEL file; None where it does not."""
    if content.startswith(_USUAL_WHEEL) and content.isascii():
        return None
    if not _is_utf8(content):
        return "WHEEL is not UTF-8"
    version = header_fields(content.decode()).get("wheel-version", [""])[0].strip()
    numbers = version.split(".")
    if not all(map(is_digits, numbers)):
        return "WHEEL has no Wheel-Version"
    return None if len(numbers[0]) < 10 and int(numbers[0]) <= 1 else f"Wheel-Version is {one_line(version)}"


def metadata_problems(content: bytes) -> Iterator[str]:
    """Why pip refuses a wheel whose METADATA starts with these headers, in addition to wrong fields."""
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if (b"\n " in content or b"\n\t" in content) and _FOLDED_REQUIREMENT.search(b"\n" + content):
        yield "a requirement in METADATA goes on in the next line"
    if b"\0" in content:
        yield "METADATA has NUL bytes"


def has_bom(content: bytes) -> bool:
    """Whether a byte order mark hides the first line from all who read headers as Python does."""
    return content.startswith(_BOM)


def installed_entry_points(content: bytes) -> tuple[dict[str, dict[str, str]], list[str], list[str]]:
    """Group to name to object reference, as importlib.metadata and so pip reads them; why pip refuses them; and the
    names that are there twice, of which the last one counts for scripts.

    A comment is a line of its own, and a byte order mark is no blank. Lines in no group count for nothing.
    """
    text = decode_text(content.removeprefix(_BOM), "")[0]
    if content.startswith(_BOM):
        text = f"\ufeff{text}"
    groups: dict[str, dict[str, str]] = {}
    problems = [] if _is_utf8(content) else ["entry_points.txt is not UTF-8"]
    repeated: list[str] = []
    group = None
    for line in map(str.strip, text.splitlines()):
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            group = line.strip("[]")
            continue
        if group is None:
            continue
        name, equals, reference = line.partition("=")
        if not equals:
            problems.append("entry_points.txt has a line without =")
        elif name.strip() and reference.strip():
            key = group if is_printable(group) else one_line(group)
            names = groups.setdefault(key, {})
            name, reference = one_line(name), one_line(reference)
            if names.get(name, reference) != reference:
                repeated.append(name)
            names[name] = reference
    return groups, [*problems, *_script_problems(groups)], repeated


def _script_problems(groups: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for group in _SCRIPT_GROUPS:
        for name, reference in groups.get(group, {}).items():
            if ":" not in reference.partition("[")[0]:
                yield f"the script {name} has no function"
            if "/" in name or name in {".", ".."}:
                yield f"the script {name} leads out of its folder, where old versions write it"


def start_up_lines(content: bytes) -> tuple[bool, list[str]]:
    """Whether a `.pth` file has code, which runs at each start of Python, and the paths that it adds, as written."""
    lines = decode_text(content, "")[0].splitlines()
    lines = [line for line in lines if line.strip() and not line.startswith("#")]
    return any(line.startswith(_RUN_LINE) for line in lines), [
        line.rstrip() for line in lines if not line.startswith(_RUN_LINE)
    ]
