"""Sentences for people whose lookup found nothing: which names they may have meant, and whether what they named is
something else, such as the import name of a project.

Each costs a bounded number of reads, however large the datasets are. Names come from the datasets alone.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Self

from packaging.utils import canonicalize_name

from pypi_assets.lookup.near_names import MOST_NAMES
from pypi_assets.lookup.providers import NamesReader, Provider
from pypi_assets.lookup.reader import Reader
from pypi_assets.lookup.search_terms import Kind, Meaning

OpenOther = Callable[[str], AbstractContextManager[Reader | None]]
"""Opens another dataset, or gives None where that costs more than a hint is worth."""

_MOST_READ = 500


class Hint(str):
    """A sentence with the names that it suggests as `meanings`, so that programs need not parse it."""

    meanings: tuple[Meaning, ...]

    def __new__(cls, sentence: str, *meanings: Meaning) -> Self:
        """Return the sentence with these meanings."""
        hint = super().__new__(cls, sentence)
        hint.meanings = meanings
        return hint


def did_you_mean(kind: Kind, names: Sequence[str]) -> Iterator[Hint]:
    """Yield one sentence that suggests `names`; none without names."""
    if names:
        yield Hint(f"did you mean {listed(names, 'or')}?", *named(kind, names))


def named(kind: Kind, names: Iterable[str]) -> list[Meaning]:
    """Return the meaning of each name."""
    return [Meaning(kind, name) for name in names]


def listed(names: Sequence[str], conjunction: str) -> str:
    """
    >>> listed(["a", "b", "c"], "and")
    'a, b and c'
    """
    *first, last = names
    return f"{', '.join(first)} {conjunction} {last}" if first else last


def module_hints(reader: NamesReader, name: str, _: OpenOther) -> Iterator[Hint]:
    """Yield guesses at the module `name`, which no project provides."""
    if roots := top_level(reader.names_of(name, _MOST_READ)):
        sentence = f"{name} is a project, which provides the module{_s(roots)} {listed(roots, 'and')}"
        yield Hint(sentence, Meaning(Kind.PROJECT, name), *named(Kind.IMPORT, roots))
    near = reader.suggest(name)
    yield from did_you_mean(Kind.IMPORT, near)
    if not near and (parent := _parent(reader, name)):
        sentence = f"{parent} is a module; nothing in it is called {name.removeprefix(parent + '.')}"
        yield Hint(sentence, Meaning(Kind.IMPORT, parent))


def command_hints(reader: NamesReader, name: str, _: OpenOther) -> Iterator[Hint]:
    """Yield guesses at the command `name`, which no project installs."""
    if commands := reader.names_of(name, MOST_NAMES):
        sentence = f"{name} is a project, which installs the command{_s(commands)} {listed(commands, 'and')}"
        yield Hint(sentence, Meaning(Kind.PROJECT, name), *named(Kind.COMMAND, commands))
    yield from did_you_mean(Kind.COMMAND, reader.suggest(name))


def project_hints(reader: Reader, name: str, open_other: OpenOther) -> Iterator[Hint]:
    """Yield guesses at the project `name`, of which nothing is known."""
    for dataset, sentence in (("modules", module_sentence), ("commands", command_sentence)):
        with open_other(dataset) as other:
            found = other.some_providers(name, _MOST_READ) if isinstance(other, NamesReader) else []
            if found:
                yield sentence(name, best_providers(name, found))
                break
    yield from did_you_mean(Kind.PROJECT, reader.suggest(name))


def newest_version_hint(name: str, version: str) -> Hint:
    """Return that `version` is the newest one of a project."""
    return Hint(f"the newest version of {name} is {version}", Meaning(Kind.RELEASE, name, version))


def module_sentence(name: str, projects: Sequence[str]) -> Hint:
    """Return that `name` is a module of these projects."""
    provide = "provides" if len(projects) == 1 else "provide"
    sentence = f"{name} is a module, which the project{_s(projects)} {listed(projects, 'and')} {provide}"
    return Hint(sentence, Meaning(Kind.IMPORT, name), *named(Kind.PROJECT, projects))


def command_sentence(name: str, projects: Sequence[str]) -> Hint:
    """Return that `name` is a command of these projects."""
    install = "installs" if len(projects) == 1 else "install"
    sentence = f"{name} is a command, which the project{_s(projects)} {listed(projects, 'and')} {install}"
    return Hint(sentence, Meaning(Kind.COMMAND, name), *named(Kind.PROJECT, projects))


def best_providers(name: str, providers: Iterable[Provider]) -> list[str]:
    """Those that are most likely meant: whose own name is, or has in it, what they provide; then those with many
    versions that do.
    """
    wanted = canonicalize_name(name)

    def rank(provider: Provider) -> tuple[bool, bool, int, str]:
        normalized = provider.normalized
        return normalized != wanted, wanted not in normalized, -len(provider.versions), normalized

    return [provider.project for provider in sorted(providers, key=rank)[:MOST_NAMES]]


def top_level(modules: Iterable[str]) -> list[str]:
    """A few names before the first dot, each once, the public ones first."""
    roots = dict.fromkeys(module.partition(".")[0] for module in modules)
    return sorted(roots, key=lambda root: root.startswith("_"))[:MOST_NAMES]


def _parent(reader: NamesReader, name: str) -> str | None:
    parent = name.rpartition(".")[0]
    while parent and not reader.some_providers(parent, 1):
        parent = parent.rpartition(".")[0]
    return parent or None


def _s(names: Sequence[str]) -> str:
    return "" if len(names) == 1 else "s"
