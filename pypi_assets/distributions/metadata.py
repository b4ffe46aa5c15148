"""Parse the small metadata files: core metadata, requires.txt, entry_points.txt and top_level.txt.

Parsing is lenient: an invalid field leads to a note and never to an error. Requirements stay as written.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter

from pypi_assets.characters import is_printable, lower, printable, replace_unprintable
from pypi_assets.distributions.limits import LimitExceededError
from pypi_assets.distributions.project_facts import bounded, cut_license, join_urls, license_classifiers
from pypi_assets.distributions.record import AMBIGUOUS
from pypi_assets.distributions.requirements import is_requirement, is_specifier, is_usable_marker


@dataclass(frozen=True, slots=True)
class CoreMetadata:
    """The fields of a METADATA or PKG-INFO file that records store. DistributionRecord describes them.

    `dynamic` has lower-case field names.
    """

    metadata_version: str | None = None
    name: str | None = None
    version: str | None = None
    summary: str | None = None
    requires_python: str | None = None
    requires_dist: tuple[str, ...] = ()
    provides_extra: tuple[str, ...] = ()
    dynamic: frozenset[str] = frozenset()
    license_expression: str | None = None
    license: str | None = None
    license_classifiers: tuple[str, ...] = ()
    project_urls: tuple[str, ...] = ()
    import_names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Check whether all three required fields are missing. Then the file is not core metadata at all."""
        return self.metadata_version is None and self.name is None and self.version is None

    @property
    def declared_names(self) -> tuple[str, ...]:
        """Return `import_names` without the mark of private names, which follows a semicolon (PEP 794)."""
        return unique(name.partition(";")[0].strip() for name in self.import_names or ())


def decode_text(content: bytes, name: str, *, keep_mark: bool = False) -> tuple[str, tuple[str, ...]]:
    """Return the text of a file and notes on replaced bytes. `name` is the file's name in the notes.

    The text has no NUL and no surrogate, and no byte order mark at its start unless `keep_mark` is set.
    """
    notes = []
    content = content if keep_mark else content.removeprefix(codecs.BOM_UTF8)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode(errors="replace")
        notes.append(f"{name} is not UTF-8: wrong bytes are replaced")
    if "\0" in text:
        text = text.replace("\0", "")
        notes.append(f"{name} has NUL bytes: they are left out")
    return text, tuple(notes)


MAX_ODD_HEADERS = 2 * 1024**2
"""The maximum number of characters that are parsed. Short lines take fifty times their size in memory."""
_BLANK_LINE = re.compile(rb"(?:\A|(?>\r\n|\r|\n))(?>\r\n|\r|\n)")
_LINE = re.compile(r"[^\r\n]*+(?:\r\n|\r|\n)|[^\r\n]+")
_HEADER_LINE = re.compile(r"From |[!-9;-~]*+:|[\t ]")
_PLAIN_HEADERS = re.compile(r"(?:[!-9;-~]++:.*+(\n[\t ].*+)*+(?:\n|\Z))*+(?=\n|\Z)")
_READ_FIELDS = frozenset(
    {"metadata-version", "name", "version", "summary", "requires-python", "requires-dist", "provides-extra"}
    | {"dynamic", "import-name", "import-namespace"}
    | {"license", "license-expression", "classifier", "project-url", "home-page", "download-url"}
)
_MAYBE_READ = re.compile(r"\n([DHILMNPRSVdhilmnprsv][A-Za-z-]++|[Cc][A-Za-z-]++(?=:.*License)):(.*)")
"""Matches fields that begin like a field that is used. Only the licence classifiers match among the many others."""


def headers_of(content: bytes) -> bytes:
    """Return the start of core metadata up to the first blank line. No reader looks for headers after it."""
    end = content.find(b"\n\n") + 2
    headers = content[:end] if end > 1 else content
    if b"\r" in headers or headers.startswith(b"\n"):
        blank = _BLANK_LINE.search(content)
        return content[: blank.end()] if blank else content
    return headers


def parse_metadata(content: bytes, name: str) -> CoreMetadata:
    """Return the core metadata in `content`. `name` is the file's name in notes.

    The headers end at the place where the email package of Python, which installers use, ends them.
    """
    text, decode_notes = decode_text(headers_of(content), name)
    notes = list(decode_notes)
    fields = _plain_fields(text)
    if fields is None:
        if len(text) > MAX_ODD_HEADERS:
            text = text[: text.rfind("\n", 0, MAX_ODD_HEADERS) + 1]
            notes.append(f"{name}: what the headers have after {MAX_ODD_HEADERS} characters is left out")
        fields, defect = _any_fields(text)
        if defect:
            notes.append(f"{name}: the headers end early, at a line that is none ({defect})")

    return _core_metadata(fields, name, notes)


def _core_metadata(fields: Mapping[str, list[str]], name: str, notes: list[str]) -> CoreMetadata:
    """Return the metadata in `fields`, which have lower-case names, and add to `notes`."""
    lines = {
        key: [line for value in values if (line := one_line(value))]
        for key, values in fields.items()
        if key in _READ_FIELDS
    }

    if name.endswith("METADATA") and not all(map(str.strip, fields.get("requires-dist", ()))):
        notes.append(f"{AMBIGUOUS} pip refuses it: {name} has an empty Requires-Dist")

    def first(key: str) -> str | None:
        values = lines.get(lower(key))
        if not values:
            return None
        if len(values) > 1:
            notes.append(f"{name}: {len(values)} {key} fields; the first one counts")
        return values[0]

    metadata = CoreMetadata(
        metadata_version=first("Metadata-Version"),
        name=first("Name"),
        version=first("Version"),
        summary=first("Summary"),
        requires_python=first("Requires-Python"),
        requires_dist=tuple(lines.get("requires-dist", ())),
        provides_extra=unique(lines.get("provides-extra", ())),
        dynamic=frozenset(map(lower, lines.get("dynamic", ()))),
    )
    import_names = None  # an empty field declares that the project has nothing to import (PEP 794)
    if "import-name" in lines or "import-namespace" in lines:
        import_names = [*lines.get("import-name", ()), *lines.get("import-namespace", ())]
    return with_facts(
        metadata,
        name,
        notes,
        license_expression=first("License-Expression"),
        license_text=first("License"),
        classifiers=lines.get("classifier", ()),
        project_urls=join_urls(lines.get("project-url", ()), first("Home-page"), first("Download-URL")),
        import_names=import_names,
    )


def with_facts(
    metadata: CoreMetadata,
    source: str,
    notes: list[str],
    *,
    license_expression: str | None = None,
    license_text: str | None = None,
    classifiers: Iterable[str] = (),
    project_urls: Iterable[str] = (),
    import_names: Iterable[str] | None = None,
) -> CoreMetadata:
    """Return `metadata` with these values, limited as a record requires, and with `notes`.

    The values are single lines. Notes on skipped values name `source`.
    """

    def limited(field: str, values: Iterable[str]) -> tuple[str, ...]:
        if not values:
            return ()
        kept, left_out = bounded(values, f"{source}: {field}")
        notes.extend(left_out)
        return kept

    expression = () if license_expression is None else (license_expression,)
    return replace(
        metadata,
        license_expression=next(iter(limited("License-Expression", expression)), None),
        license=cut_license(license_text),
        license_classifiers=limited("Classifier", license_classifiers(classifiers)),
        project_urls=limited("Project-URL", project_urls),
        import_names=None if import_names is None else limited("Import-Name", import_names),
        notes=tuple(notes),
    )


def _plain_fields(text: str) -> dict[str, list[str]] | None:
    """Return the same fields as `_any_fields` several times as fast, or None if anything is unusual."""
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if "\r" in text or (headers := _PLAIN_HEADERS.match(text)) is None:
        return None
    block = headers.group()
    if headers.group(1):
        block = block.replace("\n ", "  ").replace("\n\t", "  ")
    written: dict[str, list[str]] = {}
    for key, value in _MAYBE_READ.findall(f"\n{block}"):
        if key in written:
            written[key].append(value)
        else:
            written[key] = [value]
    fields = {lower(key): values for key, values in written.items()}
    return fields if len(fields) == len(written) else None  # otherwise a field occurs in two spellings


def header_fields(text: str) -> dict[str, list[str]]:
    """Return the values of each header in `text` by lower-case name, as the email package of Python reads them."""
    return _any_fields(text)[0]


def _any_fields(text: str) -> tuple[dict[str, list[str]], str | None]:
    """Return the values of each field by lower-case name, and the name of the first defect, as installers read them."""
    lines, defects = _header_lines(text)
    fields: dict[str, list[list[str]]] = {}
    value: list[str] | None = None
    for number, line in enumerate(lines):
        name, _, rest = line.partition(":")
        if line[0] in " \t":
            if value is None:
                defects.append("FirstHeaderLineIsContinuationDefect")
            else:
                value.append(line)
            continue
        value = None
        if line.startswith("From "):  # the envelope of a mailbox
            if 0 < number < len(lines) - 1:
                defects.append("MisplacedEnvelopeHeaderDefect")
        elif not name:
            defects.append("InvalidHeaderDefect")
        else:
            value = [rest]
            fields.setdefault(lower(name), []).append(value)
    return {name: ["".join(lines) for lines in values] for name, values in fields.items()}, next(iter(defects), None)


def _header_lines(text: str) -> tuple[list[str], list[str]]:
    """Return the header lines of `text`, and the defect if the first line after them is not blank."""
    lines: list[str] = []
    for match in _LINE.finditer(text):
        if not _HEADER_LINE.match(line := match[0]):
            return lines, ["MissingHeaderBodySeparatorDefect"] if line[0] not in "\r\n" else []
        lines.append(line)
    return lines, []


def one_line(value: str) -> str:
    """Return `value` as one line without control characters. Folded headers are joined by a space."""
    value = value.strip()  # most values have no unprintable character except a final line end
    if not is_printable(value):
        value = replace_unprintable(value, " ")
    elif "  " not in value:
        return value
    return " ".join(value.split())


def unique(values: Iterable[str]) -> tuple[str, ...]:
    """Return `values` without duplicates and empty ones, in their order."""
    return tuple([value for value in dict.fromkeys(values) if value])


def plain_requirement() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns for the most frequent forms of requirements and of specifiers.

    `packaging` accepts all matches, and many other forms.
    """
    release = r"[0-9]{1,9}(?:\.[0-9]{1,9})*"
    suffix = r"(?:(?:a|b|rc)(?:\.?[0-9]{1,9})?)?(?:(?:\.post|-)[0-9]{1,9})?(?:\.dev[0-9]{1,9})?"
    clause = rf"(?:[=!]= ?{release}(?:\.\*|{suffix})|[<>]=? ?{release}{suffix}|~= ?[0-9]{{1,9}}\.{release}{suffix})"
    specifiers = rf"{clause}(?: ?, ?{clause})*"
    identifier = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
    extras = rf"\[{identifier}(?:, ?{identifier})*\]"
    variable = (
        r"(?:python_(?:full_)?version|os_name|sys_platform|platform_(?:machine|system|python_implementation)"
        r"|implementation_name|extra)"
    )
    text = r"[A-Za-z0-9_.+-]*"
    comparison = rf"""{variable} ?(?:[=!]=|[<>]=?) ?(?:"{text}"|'{text}')"""
    inner = rf"(?:{comparison}|\({comparison}(?: (?:and|or) {comparison})*\))"
    group = rf"(?:{comparison}|\({inner}(?: (?:and|or) {inner})*\))"
    marker = rf"{group}(?: (?:and|or) {group})*"
    return (
        re.compile(rf"{identifier} ?(?:{extras})? ?(?:{specifiers}|\({specifiers}\))?(?: ?; ?{marker})?"),
        re.compile(specifiers),
    )


_PLAIN_REQUIREMENT, _PLAIN_SPECIFIERS = plain_requirement()
MAX_CHECKED_CHARACTERS = 4096
"""Longer texts are not checked: for a requirement of some megabytes, `packaging` takes hundreds of megabytes."""


def requirement_notes(requires_dist: Iterable[str], requires_python: str | None) -> tuple[str, ...]:
    """Return notes on requirements and specifiers that are invalid by PEP 508 or 440 and by the lenient `packaging`."""
    notes = []
    for requirement in requires_dist:
        if len(requirement) > MAX_CHECKED_CHARACTERS:
            notes.append(f"too long to be checked as a requirement: {printable(requirement, 100)}")
            continue
        if _PLAIN_REQUIREMENT.fullmatch(requirement):
            continue
        if not is_requirement(requirement):
            notes.append(f"not a requirement: {printable(requirement)}")
    if requires_python is not None and len(requires_python) > MAX_CHECKED_CHARACTERS:
        notes.append(f"too long to be checked: Requires-Python: {printable(requires_python, 100)}")
    elif requires_python is not None and not (
        _PLAIN_SPECIFIERS.fullmatch(requires_python) or is_specifier(requires_python)
    ):
        notes.append(f"not a version specifier: Requires-Python: {printable(requires_python)}")
    return tuple(notes)


def refused_requirements(requires_dist: Iterable[str]) -> list[str]:
    """Return the requirements for which pip rejects a wheel: invalid ones, or ones whose marker it cannot evaluate."""
    return [
        requirement
        for requirement in requires_dist
        if not _PLAIN_REQUIREMENT.fullmatch(requirement)
        and len(requirement) <= MAX_CHECKED_CHARACTERS
        and not (is_requirement(requirement) and is_usable_marker(requirement))
    ]


_COMMENT = re.compile(r"(?:^|\s)#")


def _lines(text: str) -> Iterator[str]:
    """Yield the lines without comments and blanks. `#` begins a comment at the start of a line or after a space."""
    for line in text.splitlines():
        if stripped := (_COMMENT.split(line, maxsplit=1)[0] if "#" in line else line).strip():
            yield one_line(stripped)


def _sections(text: str) -> Iterator[tuple[str | None, str]]:
    """Yield each line with its `[section]`, which is None before the first header. A header yields an empty line."""
    section = None
    for line in _lines(text):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip()
            yield section, ""
        else:
            yield section, line


def parse_top_level(content: bytes) -> tuple[str, ...]:
    return unique(_lines(decode_text(content, "top_level.txt")[0]))


def parse_entry_points(content: bytes) -> dict[str, dict[str, str]]:
    """Return object references by group and name, without empty groups. Invalid lines are skipped."""
    groups: dict[str, dict[str, str]] = {}
    for group, line in _sections(decode_text(content, "entry_points.txt")[0]):
        name, equals, reference = line.partition("=")
        if group and equals and name.strip() and reference.strip():
            groups.setdefault(group, {})[name.strip()] = reference.strip()
    return groups


def parse_requires_txt(content: bytes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return setuptools' requires.txt as (PEP 508 requirements, extras), as setuptools writes them into METADATA."""
    lines = _sections(decode_text(content, "requires.txt")[0])
    sections = groupby(lines, key=itemgetter(0))
    return requirements_of_extras((section or "", [line for _, line in group]) for section, group in sections)


MAX_REQUIREMENTS_CHARACTERS = 4 * 1024**2
"""Each requirement repeats the extra and the marker of its section, so a small file could otherwise fill the memory."""


def requirements_of_extras(
    sections: Iterable[tuple[str, Iterable[str]]],
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (PEP 508 requirements, extras) of all sections.

    A section is `""`, an extra, `:marker` or `extra:marker`, as in requires.txt and in setuptools' `extras_require`.
    Raise LimitExceededError if all of them are longer than MAX_REQUIREMENTS_CHARACTERS together.
    """
    requirements = []
    extras = []
    characters = 0
    for section, given in sections:
        lines = [line for line in given if line]
        characters += len(section) * (1 + len(lines)) + sum(map(len, lines))
        if characters > MAX_REQUIREMENTS_CHARACTERS:
            raise LimitExceededError(f"the requirements are longer than {MAX_REQUIREMENTS_CHARACTERS} characters")
        extra, _, marker = section.partition(":")
        extra, marker = normalized_extra(extra), one_line(marker)
        if extra:
            extras.append(extra)
        requirements += [conditional(line, marker, extra) for line in lines]
    return unique(requirements), unique(extras)


_NOT_IN_EXTRAS = re.compile(r"[^a-z0-9]+")


def normalized_extra(extra: str) -> str:
    """Return the normalized name of an extra (PEP 685), as current build backends write it."""
    return _NOT_IN_EXTRAS.sub("-", lower(extra.strip())).strip("-")


_URL = re.compile(r"[^;@]++@")
_BEFORE_URL_MARKER = re.compile(r"\s;")
_COMPOUND = re.compile(r"\b(?:and|or)\b", re.ASCII)


def conditional(requirement: str, marker: str = "", extra: str = "") -> str:
    """Return `requirement`, which may have a marker, with another marker and an extra, in the syntax of PEP 508."""
    if "@" in requirement and _URL.match(requirement):
        separator = " ; "  # a URL may contain a semicolon
        requirement, own, *_ = *_BEFORE_URL_MARKER.split(requirement, maxsplit=1), ""
    else:
        separator = "; "
        requirement, _, own = requirement.partition(";")
    conditions = [each for each in (own.strip(), marker) if each]
    if extra:
        conditions.append(f'extra == "{extra}"')
    if not conditions:
        return requirement.strip()
    if len(conditions) > 1:
        conditions = [f"({each})" if _COMPOUND.search(each) else each for each in conditions]
    return f"{requirement.strip()}{separator}{' and '.join(conditions)}"
