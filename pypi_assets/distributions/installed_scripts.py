"""The entry points of an installed wheel, and the scripts that pip makes of them.

importlib.metadata, and so pip, reads entry_points.txt line by line. Then pip looks for a name, `=` and a reference
anywhere in each line: what is written in an unusual way becomes another script, or none.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pypi_assets.characters import is_printable
from pypi_assets.distributions.extract import printable
from pypi_assets.distributions.metadata import decode_text, one_line
from pypi_assets.distributions.wheel_files import is_utf8

_BOM = b"\xef\xbb\xbf"
_SCRIPT_GROUPS = ("console_scripts", "gui_scripts")
_USUAL_REFERENCE = re.compile(
    r"\w+(?:\.\w+)*:\w+(?:\.\w+)*\s*(?:\[\s*[\w-]+(?:=\w+)?(?:,\s*\w+(?:=\w+)?)*\s*\])?", re.ASCII
)
_BLANK = re.compile(r"\s")
_MAX_REFERENCE = 4096
_MAX_NAME_BYTES = 255
"""Of a file's name, on all usual file systems."""
_NAMED_BY_VERSION = frozenset({"pip", "easy_install"})
"""Scripts that pip installs under further names too, such as `pip3.11`, and `pip3` for no other reference."""
_THEIR_PROJECTS = frozenset({"pip", "setuptools", "distribute"})
_SHOWN = 3


class InstalledEntryPoints(NamedTuple):
    """Object references by group and name; why pip refuses the wheel; and what else differs from `groups`."""

    groups: dict[str, dict[str, str]]
    problems: list[str]
    doubts: list[str]


def installed_entry_points(content: bytes, project: str | None = None) -> InstalledEntryPoints:
    """What pip makes of entry_points.txt with this `content`, in a wheel of `project` (normalized).

    A comment is a line of its own, and a byte order mark is no blank. Lines in no group count for nothing. Of two entry
    points of one name the last one counts.
    """
    if not content:
        return InstalledEntryPoints({}, [], [])
    text = decode_text(content.removeprefix(_BOM), "")[0]
    if content.startswith(_BOM):
        text = f"\ufeff{text}"
    groups: dict[str, dict[str, str]] = {}
    problems = [] if is_utf8(content) else ["entry_points.txt is not UTF-8"]
    if b"\0" in content:
        problems.append("entry_points.txt has NUL bytes")
    repeated: list[str] = []
    replaced: list[str] = []
    empty = 0
    group = None
    for line in map(str.strip, text.splitlines()):
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            group = line.strip("[]")
            continue
        if group is None:
            continue
        name, equals, reference = (part.strip() for part in line.partition("="))
        if not equals:
            problems.append("entry_points.txt has a line without =")
        elif not name or not reference:
            empty += 1
        else:
            key = group if is_printable(group) else one_line(group)
            shown, target = one_line(name), one_line(reference)
            if (key, shown, target) != (group, name, reference):
                replaced.append(shown)
            names = groups.setdefault(key, {})
            if names.get(shown, target) != target:
                repeated.append(shown)
            names[shown] = target
    doubts = []
    if repeated:
        doubts.append(f"{len(repeated)} entry points are there twice, the last one counts: {repeated[0]}")
    if replaced:
        doubts.append(f"characters or blanks in {len(replaced)} entry points are replaced: {replaced[0]}")
    if empty:
        doubts.append(f"{empty} entry points without a name or a reference are left out")
    return InstalledEntryPoints(
        groups, [*problems, *_script_problems(groups)], [*doubts, *_script_doubts(groups, project)]
    )


def _script_problems(groups: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for group in _SCRIPT_GROUPS:
        for name, reference in groups.get(group, {}).items():
            if ":" not in reference.partition("[")[0]:
                yield f"the script {name} has no function"
            if "/" in name or "\\" in name or name in {".", ".."}:
                yield f"the script {name} leads out of its folder, where old versions write it"
            if len(name) * 4 > _MAX_NAME_BYTES and len(name.encode()) > _MAX_NAME_BYTES:
                yield f"the name of the script {printable(name, 40)} is too long for usual file systems"


def _script_doubts(groups: Mapping[str, Mapping[str, str]], project: str | None) -> Iterator[str]:
    scripts = [each for group in _SCRIPT_GROUPS for each in groups.get(group, {}).items()]
    odd = [name for name, reference in scripts if not _is_usual(name, reference)]
    if odd:
        shown = printable(", ".join(odd[:_SHOWN]), 150)
        yield f"pip refuses {len(odd)} scripts, or makes others of their lines: {shown}"
    versioned = _NAMED_BY_VERSION.intersection(groups.get("console_scripts", ()))
    if versioned and project not in _THEIR_PROJECTS:
        yield f"pip installs the script {min(versioned)} under names with a version too, and in their place"


def _is_usual(name: str, reference: str) -> bool:
    """Whether pip makes a script of this name, for this reference."""
    return (
        not name.startswith("[")
        and not _BLANK.search(name)
        and len(reference) <= _MAX_REFERENCE
        and _USUAL_REFERENCE.fullmatch(reference) is not None
    )
