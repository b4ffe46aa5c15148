"""Read the lines of files in the format of requirements.txt, and of files that they include.

The format is pip's: https://pip.pypa.io/en/stable/reference/requirements-file-format/
"""

import codecs
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidName, canonicalize_name

from pypi_assets.distributions.filenames import SDIST_SUFFIXES
from pypi_assets.locks.lock_content import (
    LARGEST_REQUIREMENTS_BYTES,
    MOST_ENTRIES,
    LockError,
    checked_version,
    read_bytes,
    shown,
)
from pypi_assets.locks.pins import LockedFile, Pin, Remark, RemarkKind, hashes_of

REQUIREMENT_FILE, CONSTRAINT_FILE, EDITABLE, HASH = "--requirement", "--constraint", "--editable", "--hash"
_INCLUDES = {REQUIREMENT_FILE, CONSTRAINT_FILE}
_WITH_VALUE = {
    *("--index-url", "--pypi-url", "--extra-index-url", "--find-links", "--trusted-host", "--use-feature"),
    *("--no-binary", "--only-binary", "--all-releases", "--only-final"),
    *("--config-settings", "--config-setting", EDITABLE, HASH, *_INCLUDES),
}
_FLAGS = {"--no-index", "--pre", "--prefer-binary", "--require-hashes", "--no-require-hashes"}
_LONG_NAMES = {
    "-r": REQUIREMENT_FILE,
    "-c": CONSTRAINT_FILE,
    "-e": EDITABLE,
    "-i": "--index-url",
    "-f": "--find-links",
    "-C": "--config-settings",
    "--config-setting": "--config-settings",
    "--pypi-url": "--index-url",
}
OPTIONS = frozenset(_LONG_NAMES.get(name, name) for name in _WITH_VALUE | _FLAGS)
"""The options of the format, each under one name."""
_COMMENT = re.compile(r"(^|\s+)#.*$")
_ENCODING = re.compile(rb"#.*?coding[:=]\s*([-\w.]+)")
_BYTE_ORDER_MARKS = {  # the mark of UTF-16 is the start of the mark of UTF-32
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_URL = re.compile(r"[a-z][a-z0-9+.-]*:.*", re.IGNORECASE | re.ASCII | re.DOTALL)
_ARCHIVES = (".whl", *SDIST_SUFFIXES)


class LineKind(StrEnum):
    """The effect of a line: it requires a project, or it only constrains the version (`-c`)."""

    REQUIREMENT = "requirement"
    CONSTRAINT = "constraint"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a line: values by long name, and the names of unknown options."""

    values: Mapping[str, tuple[str, ...]]
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RequirementLine:
    """A line that names a project, a URL or a path.

    `where` is the file and the number of the line. `text` is the requirement without options. `requirement` is None for
    a URL or a path. `name` is the project, if it is known.
    """

    kind: LineKind
    where: str
    text: str
    requirement: Requirement | None
    name: str | None
    options: Options

    @property
    def hashes(self) -> tuple[str, ...]:
        """The hashes of the line as written, such as `sha256:HEX`."""
        return self.options.values.get(HASH, ())

    @property
    def pinned_version(self) -> str | None:
        """The version of a single `==` or `===` without a wildcard, or None."""
        return None if self.requirement is None else pinned_version(self.requirement.specifier)


def pinned_version(specifier: SpecifierSet) -> str | None:
    """Return the version of a single `==` or `===` without a wildcard, or None."""
    specifiers = list(specifier)
    if len(specifiers) != 1 or specifiers[0].operator not in {"==", "==="}:
        return None
    version = specifiers[0].version
    return None if version.endswith(".*") else version


@dataclass(frozen=True, slots=True)
class OptionLine:
    """A line of options that apply to all requirements."""

    where: str
    options: Options


def requirement_lines(path: Path) -> Iterator[RequirementLine | OptionLine]:
    """Yield the lines of a file, and of files that it includes by `-r` and `-c`. Raise LockError."""
    return _lines(path, LineKind.REQUIREMENT, ())


def _lines(path: Path, kind: LineKind, through: tuple[Path, ...]) -> Iterator[RequirementLine | OptionLine]:
    content = read_bytes(path, LARGEST_REQUIREMENTS_BYTES)
    if content.count(b"\n") > MOST_ENTRIES * 10:
        raise LockError(f"{path}: has more than {MOST_ENTRIES * 10:,} lines")
    if path.resolve() in through:
        raise LockError(f"{path}: includes itself")
    for number, line in _logical_lines(_decoded(content, path)):
        where = f"{path}:{number}"
        text, options = _split(line, where)
        editables = options.values.get(EDITABLE, ())
        if text or editables:
            requirement, name = (None, _name_of(editables[0])) if not text else _parsed(text, where)
            yield RequirementLine(kind, where, text or f"-e {editables[0]}", requirement, name, options)
            continue
        for option, included_kind in ((REQUIREMENT_FILE, kind), (CONSTRAINT_FILE, LineKind.CONSTRAINT)):
            for included in options.values.get(option, ()):
                if "://" in included:
                    raise LockError(f"{where}: {included} is not a local file. Download it, and include the local file")
                yield from _lines(path.parent / included, included_kind, (*through, path.resolve()))
        others = {name: given for name, given in options.values.items() if name not in _INCLUDES}
        if others or options.unknown:
            yield OptionLine(where, Options(others, options.unknown))


def _decoded(content: bytes, path: Path) -> str:
    """Return the text of a file in UTF-8, or in the encoding of its byte order mark or of a comment at its start.

    As in pip, the comment `# -*- coding: NAME -*-` has to be in the first two lines.
    """
    marked = next((mark for mark in _BYTE_ORDER_MARKS if content.startswith(mark)), b"")
    declared = (_ENCODING.match(line) for line in content.split(b"\n", 2)[:2])
    encoding = next((match[1].decode() for match in declared if match), "utf-8")
    try:
        return content[len(marked) :].decode(_BYTE_ORDER_MARKS[marked] if marked else encoding)
    except (UnicodeDecodeError, LookupError) as error:
        raise LockError(f"{path}: cannot be read as text in {encoding}: {error}") from None


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line without its comment, with the number of its first line. A backslash at the end joins lines."""
    first, joined = 0, ""
    for number, line in enumerate(text.splitlines(), start=1):
        first = first or number
        is_comment = _COMMENT.match(line) is not None
        if line.endswith("\\") and not is_comment:
            joined += line.strip("\\")
            continue
        if stripped := _COMMENT.sub("", joined + (" " if is_comment else "") + line).strip():
            yield first, stripped
        first, joined = 0, ""
    if stripped := _COMMENT.sub("", joined).strip():
        yield first, stripped


def _split(line: str, where: str) -> tuple[str, Options]:
    """Return the requirement of a line, which may be empty, and the options after it. Raise LockError."""
    words = line.split(" ")
    end = next((number for number, word in enumerate(words) if word.startswith("-")), len(words))
    try:
        arguments = shlex.split(" ".join(words[end:]))
    except ValueError as error:
        raise LockError(f"{where}: {shown(line)} cannot be split into options: {error}") from None
    return " ".join(words[:end]).strip(), _options(arguments, where)


def _options(arguments: Iterable[str], where: str) -> Options:
    """Parse options. Raise LockError if a value is missing. Values of unknown options are skipped."""
    values: dict[str, tuple[str, ...]] = {}
    unknown: list[str] = []
    left = iter(arguments)
    for argument in left:
        if not argument.startswith("-"):
            continue
        name, equals, value = argument.partition("=")
        if not argument.startswith("--"):
            name, equals, value = argument[:2], argument[2:], argument[2:]
        option = _option(name)
        if option is None:
            unknown.append(name)
            continue
        if option in _WITH_VALUE and not equals:
            value = next(left, "")
            if not value:
                raise LockError(f"{where}: {name} needs a value")
        elif option in _FLAGS and equals:
            raise LockError(f"{where}: {name} takes no value")
        values[option] = (*values.get(option, ()), value)
    return Options(values, tuple(unknown))


def _option(name: str) -> str | None:
    """Return the long name of an option, or None. Like pip, accept an unambiguous abbreviation."""
    known = sorted(_WITH_VALUE | _FLAGS)
    begun = [name] if name in {*known, *_LONG_NAMES} else [option for option in known if option.startswith(name)]
    if not name.strip("-") or len(begun) != 1:
        return None
    return _LONG_NAMES.get(begun[0], begun[0])


def _parsed(text: str, where: str) -> tuple[Requirement | None, str | None]:
    """Return a requirement and its project. The requirement is None for a URL or a path. Raise LockError."""
    bare = text.partition(";")[0].strip()
    if "@" not in bare and bare.lower().endswith(_ARCHIVES):
        return None, _name_of(bare)
    try:
        requirement = Requirement(text)
    except (InvalidRequirement, ValueError, RecursionError) as error:  # ValueError: a number with thousands of digits
        if _URL.fullmatch(bare) or "/" in bare or "\\" in bare or bare.startswith("."):
            return None, _name_of(bare)
        reason = str(error).partition("\n")[0]
        raise LockError(f"{where}: {shown(text)} is not a requirement: {reason}") from None
    return (None if requirement.url else requirement), requirement.name


def _name_of(location: str) -> str | None:
    """Return the project that a URL or a path names, by `#egg=NAME` or as a wheel, or None.

    >>> _name_of("git+https://example.org/x.git#egg=demo[fast]&subdirectory=a")
    'demo'
    """
    name, at, _ = location.partition("@")
    if at and _is_name(name.partition("[")[0].strip()):
        return name.partition("[")[0].strip()
    try:
        parts = urlsplit(location)
    except ValueError:  # brackets that are not an address
        return None
    egg = next((option.removeprefix("egg=") for option in parts.fragment.split("&") if option.startswith("egg=")), "")
    filename = unquote(PurePosixPath(parts.path.replace("\\", "/")).name)
    return egg.partition("[")[0] or (filename.partition("-")[0] if filename.endswith(".whl") else None) or None


def _is_name(text: str) -> bool:
    try:
        canonicalize_name(text, validate=True)
    except InvalidName:
        return False
    return True


def requirement_pins(path: Path) -> tuple[list[Pin], list[Remark]]:
    """Return the pins of a file and the files that it includes, and remarks on lines that do not refer to an index.

    A requirement without a version gets the version that a constraint (`-c`) pins. Raise LockError, also if two lines
    contradict each other.
    """
    read = list(requirement_lines(path))
    lines = [line for line in read if isinstance(line, RequirementLine)]
    constraints = _constraints(lines)
    pins = []
    remarks = [
        Remark(RemarkKind.UNKNOWN_OPTION, f"{line.where}: unknown option {option} is ignored")
        for line in read
        for option in line.options.unknown
    ]
    for line in lines:
        if line.kind is LineKind.CONSTRAINT:
            continue
        if line.requirement is None:
            text = f"{line.where}: {shown(line.text)} is a URL or a path, not a project of an index"
            remarks.append(Remark(RemarkKind.ELSEWHERE, text, line.name and canonicalize_name(line.name)))
        else:
            pins.append(_line_pin(line, line.requirement, constraints))
    _refuse_contradictions(pins)
    return pins, remarks


def _refuse_contradictions(pins: Iterable[Pin]) -> None:
    """Raise LockError if a project has two versions for all environments or for the same ones."""
    versions: defaultdict[str, dict[str, Pin]] = defaultdict(dict)  # by marker; pip rejects a repeated requirement
    for pin in pins:
        others = versions[pin.normalized]
        rivals = list(others.values()) if pin.marker is None else [others.get(""), others.get(pin.marker)]
        for other in rivals:
            if other is not None and other.version != pin.version:
                raise LockError(
                    f"{pin.where}: {pin.text} contradicts {other.text} of {other.where}. Remove one, or give them"
                    " different markers"
                )
        others.setdefault(pin.marker or "", pin)


def _constraints(lines: Iterable[RequirementLine]) -> dict[str, str]:
    """Return the versions that constraints pin, by normalized name."""
    return {
        canonicalize_name(line.requirement.name): version
        for line in lines
        if line.kind is LineKind.CONSTRAINT and line.requirement is not None and (version := _line_version(line))
    }


def _line_pin(line: RequirementLine, required: Requirement, constraints: dict[str, str]) -> Pin:
    normalized = canonicalize_name(required.name)
    version = _line_version(line) or (None if required.specifier else constraints.get(normalized))
    if version is None:
        raise LockError(
            f"{line.where}: {shown(line.text)} pins no version. A lock needs one for each project, such as"
            f" {required.name}==1.0"
        )
    return Pin(
        name=required.name,
        normalized=normalized,
        version=version,
        where=line.where,
        marker=None if required.marker is None else str(required.marker),
        extras=frozenset(map(canonicalize_name, required.extras)),
        files=tuple(LockedFile(None, hashes_of(text, line.where)) for text in line.hashes),
    )


def _line_version(line: RequirementLine) -> str | None:
    """Return the version of `==` or `===`, or None for another operator, several of them, or a wildcard."""
    version = line.pinned_version
    return None if version is None else checked_version(version, f"{line.where}: ")
