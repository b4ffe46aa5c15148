"""Looks up modules: which projects provide one, and in which versions."""

from collections.abc import Iterable, Iterator
from typing import TypedDict

from pypi_assets.lookup.answers import Answer, Stream
from pypi_assets.lookup.providers import NamesReader, Provider, all_providers, providers, providers_of_releases
from pypi_assets.lookup.reader import require_text


class ModuleResult(TypedDict):
    """A project that provides a module: its name as displayed, and the `versions` that do, in PEP 440's order."""

    module: str
    project: str
    versions: list[str]


class ModulesReader(NamesReader):
    """Answers from `modules`."""

    dataset = "modules"

    def module(self, name: str) -> Answer[ModuleResult]:
        """The projects that provide the module, by normalized name."""
        require_text("module", name)
        return self._answer(ModuleResult, lambda db: map(_result, providers(db, name)))

    def module_of_few(self, name: str, most: int) -> Answer[ModuleResult] | None:
        """The same where at most `most` projects provide it, by as few reads; None where more do.

        Damage is an error, where `module` looks for a version that can be read.
        """
        found = self._few(require_text("module_of_few", name), most)
        if found is None:
            return None
        opened, few = found
        results = tuple(map(_result, few))
        return Answer(opened.version, opened.serial, results, ModuleResult, None, opened.followed_projects)

    def modules(self, prefix: str = "", after: tuple[str, str] | None = None) -> Stream[ModuleResult]:
        """All modules whose name begins with `prefix`, by name, and of each the projects that provide it; with `after`,
        those that come after this module and project (normalized).
        """
        require_text("modules", prefix)
        return self._stream(ModuleResult, lambda db: map(_result, all_providers(db, prefix, after)))


def providing_projects(name: str, releases: Iterable[tuple[str, str, str]]) -> Iterator[ModuleResult]:
    """Return the projects of `releases` that provide a module: (normalized name, project, version) each."""
    return map(_result, providers_of_releases(name, releases))


def _result(provider: Provider) -> ModuleResult:
    return {"module": provider.name, "project": provider.project, "versions": provider.versions}


READER = ModulesReader
