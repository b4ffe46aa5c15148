"""Suggestions for a lookup that found nothing: similar names, and other meanings such as the import name of a project.

A suggestion costs a bounded number of reads, however large the datasets are. All suggested names exist in a dataset.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import NamedTuple, Self
from urllib.parse import unquote

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)

from pypi_assets.lookup.near_names import MOST_NAMES
from pypi_assets.lookup.providers import NamesReader, Provider
from pypi_assets.lookup.reader import DatasetReader

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
    """The kind of thing that a text can name."""

    IMPORT = "import"
    PROJECT = "project"
    RELEASE = "release"
    COMMAND = "command"
    FILE = "file"


class Meaning(NamedTuple):
    """One meaning of a text. `version` is set for a release. The `name` of a file is its SHA-256 in lower case."""

    kind: Kind
    name: str
    version: str | None = None


def meanings(text: str) -> list[Meaning]:
    """Return the possible meanings of `text`, the likeliest first. An empty or very long text has none.

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
    """Return the meaning of a text whose form allows only one, such as `import yaml` or a URL. Otherwise return []."""
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


OpenOther = Callable[[str], AbstractContextManager[DatasetReader | None]]
"""Opens another dataset, or returns None if opening it costs more than a hint is worth."""

_MOST_READ = 500


class Hint(str):
    """A sentence, with the suggested names as `meanings`, so that programs need not parse it."""

    meanings: tuple[Meaning, ...]

    def __new__(cls, sentence: str, *meanings: Meaning) -> Self:
        hint = super().__new__(cls, sentence)
        hint.meanings = meanings
        return hint


def did_you_mean(kind: Kind, names: Sequence[str]) -> Iterator[Hint]:
    """Yield one sentence that suggests `names`, or nothing if there are none."""
    if names:
        yield Hint(f"did you mean {listed(names, 'or')}?", *named(kind, names))


def named(kind: Kind, names: Iterable[str]) -> list[Meaning]:
    """Return each name as a meaning of this kind."""
    return [Meaning(kind, name) for name in names]


def listed(names: Sequence[str], conjunction: str) -> str:
    """Join names as in a sentence.

    >>> listed(["a", "b", "c"], "and")
    'a, b and c'
    """
    *first, last = names
    return f"{', '.join(first)} {conjunction} {last}" if first else last


def module_hints(reader: NamesReader, name: str, _: OpenOther) -> Iterator[Hint]:
    """Yield guesses for a module that no project provides."""
    if roots := top_level(reader.names_of(name, _MOST_READ)):
        sentence = f"{name} is a project, which provides the module{_s(roots)} {listed(roots, 'and')}"
        yield Hint(sentence, Meaning(Kind.PROJECT, name), *named(Kind.IMPORT, roots))
    near = reader.suggest(name)
    yield from did_you_mean(Kind.IMPORT, near)
    if not near and (parent := _parent(reader, name)):
        sentence = f"{parent} is a module but has no {name.removeprefix(parent + '.')}"
        yield Hint(sentence, Meaning(Kind.IMPORT, parent))


def command_hints(reader: NamesReader, name: str, _: OpenOther) -> Iterator[Hint]:
    """Yield guesses for a command that no project installs."""
    if commands := reader.names_of(name, MOST_NAMES):
        sentence = f"{name} is a project, which installs the command{_s(commands)} {listed(commands, 'and')}"
        yield Hint(sentence, Meaning(Kind.PROJECT, name), *named(Kind.COMMAND, commands))
    yield from did_you_mean(Kind.COMMAND, reader.suggest(name))


def project_hints(reader: DatasetReader, name: str, open_other: OpenOther) -> Iterator[Hint]:
    """Yield guesses for an unknown project."""
    for dataset, sentence in (("modules", module_sentence), ("commands", command_sentence)):
        with open_other(dataset) as other:
            found = other.some_providers(name, _MOST_READ) if isinstance(other, NamesReader) else []
            if found:
                yield sentence(name, best_providers(name, found))
                break
    yield from did_you_mean(Kind.PROJECT, reader.suggest(name))


def newest_version_hint(name: str, version: str) -> Hint:
    """Return the hint that `version` is the newest version of a project."""
    return Hint(f"the newest version of {name} is {version}", Meaning(Kind.RELEASE, name, version))


def module_sentence(name: str, projects: Sequence[str]) -> Hint:
    """Return the hint that `name` is a module of these projects."""
    provide = "provides" if len(projects) == 1 else "provide"
    sentence = f"{name} is a module, which the project{_s(projects)} {listed(projects, 'and')} {provide}"
    return Hint(sentence, Meaning(Kind.IMPORT, name), *named(Kind.PROJECT, projects))


def command_sentence(name: str, projects: Sequence[str]) -> Hint:
    """Return the hint that `name` is a command of these projects."""
    install = "installs" if len(projects) == 1 else "install"
    sentence = f"{name} is a command, which the project{_s(projects)} {listed(projects, 'and')} {install}"
    return Hint(sentence, Meaning(Kind.COMMAND, name), *named(Kind.PROJECT, projects))


def best_providers(name: str, providers: Iterable[Provider]) -> list[str]:
    """Return the likeliest projects: first by the similarity of their name, then by the number of versions.

    A project with exactly this name comes first, then projects whose name contains it.
    """
    wanted = canonicalize_name(name)

    def rank(provider: Provider) -> tuple[bool, bool, int, str]:
        normalized = provider.normalized
        return normalized != wanted, wanted not in normalized, -len(provider.versions), normalized

    return [provider.project for provider in sorted(providers, key=rank)[:MOST_NAMES]]


def top_level(modules: Iterable[str]) -> list[str]:
    """Return a few top-level names of the modules, each once. Public names come first."""
    roots = dict.fromkeys(module.partition(".")[0] for module in modules)
    return sorted(roots, key=lambda root: root.startswith("_"))[:MOST_NAMES]


def _parent(reader: NamesReader, name: str) -> str | None:
    parent = name.rpartition(".")[0]
    while parent and not reader.some_providers(parent, 1):
        parent = parent.rpartition(".")[0]
    return parent or None


def _s(names: Sequence[str]) -> str:
    return "" if len(names) == 1 else "s"
