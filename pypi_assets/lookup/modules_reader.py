"""Look up modules: which projects provide a module, and in which versions."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from typing import TypedDict

from pypi_assets.leveldbs.datasets.modules.overview import Overview, decode_overview
from pypi_assets.leveldbs.datasets.provided_names import name_prefix, names_prefix, overview_key, split_name_key
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets.lookup.answers import Answer, Stream
from pypi_assets.lookup.providers import (
    NamesReader,
    Provider,
    all_providers,
    provider_of_stub,
    providers,
    providers_of_releases,
)
from pypi_assets.lookup.reader import require_text

_AFTER_SUBMODULES = "/"  # the character after the dot


class ModuleResult(TypedDict):
    """A project, by its display name, that provides a module.

    `versions` are the versions that provide the module, in PEP 440 order.
    """

    module: str
    project: str
    versions: list[str]


class ModulesReader(NamesReader):
    """A reader of the dataset `modules`."""

    dataset = "modules"

    def module(self, name: str) -> Answer[ModuleResult]:
        """Return the projects that provide the module, by normalized name."""
        require_text("module", name)
        return self._answer(ModuleResult, lambda db: map(_result, providers(db, name)))

    def module_of_few(self, name: str, most: int) -> Answer[ModuleResult] | None:
        """Return the result of `module` if at most `most` projects provide it, else None. This takes fewer reads.

        If the version is corrupt, this is an error, whereas `module` looks for another version.
        """
        found = self._few(require_text("module_of_few", name), most)
        if found is None:
            return None
        opened, few = found
        results = tuple(map(_result, few))
        return Answer(opened.version, opened.serial, results, ModuleResult, None, opened.followed_projects)

    def providers(self, name: str) -> list[Provider]:
        """Return the projects that provide the module, by normalized name."""
        require_text("providers", name)
        return self._read(lambda db: list(providers(db, name)))[1]

    def stubs(self, name: str, projects: Collection[str]) -> list[Provider]:
        """Return the providers among the projects (normalized) whose stubs describe the module."""
        require_text("stubs", name)
        found = self._read(lambda db: [provider_of_stub(db, name, project) for project in sorted(projects)])[1]
        return [one for one in found if one is not None]

    def overviews(self, projects: Collection[str]) -> dict[str, Overview]:
        """Return the overviews of these projects (normalized). Raises LeveldbDamagedError if one provides no module."""

        def found(db: Database) -> dict[str, Overview]:
            values = {one: db.get(overview_key(one), verify_checksums=True) for one in projects}
            if missing := [one for one, value in values.items() if value is None]:
                raise LeveldbDamagedError(
                    f"record {overview_key(missing[0])!r} is missing, although the project provides a module"
                )
            return {one: decode_overview(value) for one, value in values.items() if value is not None}

        return self._read(found)[1]

    def top_level_names(self) -> Iterator[str]:
        """Yield the top-level names of all modules, in the order of their UTF-8 bytes."""
        return self._iterate(self._current(), _top_level_names)

    def modules(self, prefix: str = "", after: tuple[str, str] | None = None) -> Stream[ModuleResult]:
        """Return all modules whose name begins with `prefix`, by name, with the projects that provide each module.

        `after` is a module and a normalized project name: the stream begins after this pair.
        """
        require_text("modules", prefix)
        return self._stream(ModuleResult, lambda db: map(_result, all_providers(db, prefix, after)))


def _top_level_names(db: Database) -> Iterator[str]:
    start = names_prefix("")
    with closing(db.raw_iterator(verify_checksums=True)) as records:
        records.seek(start)
        while records.valid() and records.key().startswith(start):
            name = split_name_key(records.key())[0].partition(".")[0]
            records.seek(name_prefix(name))
            if records.valid() and records.key().startswith(name_prefix(name)):
                yield name  # else it is not a module, but only a parent of modules
            records.seek(names_prefix(name + _AFTER_SUBMODULES))


def providing_projects(name: str, releases: Iterable[tuple[str, str, str]]) -> Iterator[ModuleResult]:
    """Yield the projects of `releases` that provide a module. A release is (normalized name, project, version)."""
    return map(_result, providers_of_releases(name, releases))


def _result(provider: Provider) -> ModuleResult:
    return {"module": provider.name, "project": provider.project, "versions": provider.versions}


READER = ModulesReader
