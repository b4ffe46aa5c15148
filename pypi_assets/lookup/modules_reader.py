"""Looks up modules: which projects provide one, and in which versions."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypedDict

from pypi_assets.lookup.answers import Answer, Stream
from pypi_assets.lookup.catalog_hints import past_module_hints
from pypi_assets.lookup.hints import module_hints
from pypi_assets.lookup.lookup_command import CatalogLookup, LookupCommand, PrefixLookup
from pypi_assets.lookup.newest import newest_providers
from pypi_assets.lookup.providers import NamesReader, Provider, all_providers, providers, providers_of_releases
from pypi_assets.lookup.reader import require_text

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog


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


def module_answer(serial: int, name: str, releases: Iterable[tuple[str, str, str]]) -> Answer[ModuleResult]:
    """What `ModulesReader.module` answers where `releases` provide it: (normalized name, project, version) each."""
    return Answer(None, serial, tuple(map(_result, providers_of_releases(name, releases))), ModuleResult)


def _result(provider: Provider) -> ModuleResult:
    return {"module": provider.name, "project": provider.project, "versions": provider.versions}


def _module_at(catalog: "Catalog", serial: int, name: str) -> Answer[ModuleResult]:
    from pypi_assets.catalog.publications.dump_rows import providing_releases  # the database takes long to load

    return module_answer(serial, name, providing_releases(catalog, serial, name))


def _no_project(name: str) -> str:
    return f"no project provides the module {name}"


READER = ModulesReader
COMMANDS = (
    LookupCommand(
        name="module",
        argument="NAME",
        example="yaml",
        help="Which projects provide the module NAME, and in which versions.",
        columns=("project", "versions"),
        answer=ModulesReader.module,
        nothing_found=_no_project,
        hints=module_hints,
        latest=newest_providers,
        latest_help="Of each project, only the newest version that provides NAME; its own newest may not.",
        prefix=PrefixLookup(
            columns=("module", "project", "versions"),
            stream=ModulesReader.modules,
            nothing_found=lambda prefix: f"no module begins with {prefix}",
        ),
        at_serial=CatalogLookup(("project", "versions"), _module_at, _no_project, hints=past_module_hints),
    ),
)
