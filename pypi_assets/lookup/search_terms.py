"""What a text of the search box may mean: an import, a project, a release, a command or a file by its hash.

It looks at the text alone. What there is of each meaning is looked up by others.
"""

import re
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import unquote

from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename

LONGEST_TEXT = 500
_SHA256 = re.compile(r"(?:sha256[:=-]\s*)?([0-9a-f]{64})", re.IGNORECASE)
_PROJECT_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,200}[A-Za-z0-9])?"
_IMPORT = re.compile(r"(?:from\s+([^\s,;]+)\s+import\b.*|import\s+([^\s,;]+).*)")
_INSTALL = re.compile(r"(?:(?:python3?\s+-m\s+)?pip3?\s+install|uv\s+(?:add|pip\s+install))\s+(?:-\S+\s+){0,9}(.+)")
_RUN = re.compile(r"(?:uvx|pipx\s+run|uv\s+tool\s+run)\s+(\S+).*")
_PACKAGE_URL = re.compile(rf"pkg:pypi/({_PROJECT_NAME})(?:@([^?#\s]+))?(?:[?#].*)?", re.IGNORECASE)
_WEB_PAGE = re.compile(rf"https?://[^/\s]+/(?:project|simple)/({_PROJECT_NAME})(?:/([^/?#\s]+))?/?(?:[?#].*)?")
_REQUIREMENT = re.compile(
    rf"({_PROJECT_NAME})\s*(?:\[[^\]]{{0,200}}\])?\s*"
    r"(?:={2,3}\s*([^\s,;=<>*]+)\s*(?:;.*)?|(?:[<>=!~;@(,].*)?)"
)


class Kind(StrEnum):
    """What a text may name."""

    IMPORT = "import"
    PROJECT = "project"
    RELEASE = "release"
    COMMAND = "command"
    FILE = "file"


class Meaning(NamedTuple):
    """One meaning of a text. `version` is that of a release; `name` of a file is its sha256, in lower case."""

    kind: Kind
    name: str
    version: str | None = None


def meanings(text: str) -> list[Meaning]:
    """What `text` may mean, the likeliest first; nothing for an empty text, or a very long one.

    >>> meanings("requests==2.32.5")
    [Meaning(kind=<Kind.RELEASE: 'release'>, name='requests', version='2.32.5')]
    >>> [meaning.kind.value for meaning in meanings("yaml")]
    ['import', 'project', 'command']
    """
    wanted = " ".join(text[: LONGEST_TEXT + 1].split())
    if not wanted or len(wanted) > LONGEST_TEXT:
        return []
    return _written_out(wanted) or _plain(wanted)


def _written_out(text: str) -> list[Meaning]:
    """What a text means that can only mean one thing."""
    if match := _SHA256.fullmatch(text):
        return [Meaning(Kind.FILE, match[1].lower())]
    if match := _IMPORT.fullmatch(text):
        return [Meaning(Kind.IMPORT, (match[1] or match[2]).strip("."))]
    if match := _RUN.fullmatch(text):
        return [Meaning(Kind.COMMAND, match[1])]
    if match := _PACKAGE_URL.fullmatch(text) or _WEB_PAGE.fullmatch(text):
        return [_project(match[1], match[2] and unquote(match[2]))]
    if match := _INSTALL.fullmatch(text):
        text = match[1].split(" ", 1)[0].strip("'\"")
        required = _REQUIREMENT.fullmatch(text)
        return [_project(required[1], required[2])] if required else []
    return _of_filename(text)


def _of_filename(text: str) -> list[Meaning]:
    try:
        if text.endswith(".whl"):
            name, version, _, _ = parse_wheel_filename(text)
        elif text.endswith((".tar.gz", ".zip")):
            name, version = parse_sdist_filename(text)
        else:
            return []
    except (InvalidWheelFilename, InvalidSdistFilename):
        return []
    return [Meaning(Kind.RELEASE, name, str(version))]


def _plain(text: str) -> list[Meaning]:
    required = _REQUIREMENT.fullmatch(text)
    if required and required[2]:
        return [_project(required[1], required[2])]
    found = []
    if all(part.isidentifier() for part in text.split(".")):
        found.append(Meaning(Kind.IMPORT, text))
    if required:
        found.append(Meaning(Kind.PROJECT, required[1]))
    if " " not in text:
        found.append(Meaning(Kind.COMMAND, text))
    return found


def _project(name: str, version: str | None) -> Meaning:
    return Meaning(Kind.RELEASE, name, version) if version else Meaning(Kind.PROJECT, name)
