"""Looks up modules: which projects provide one, and in which versions."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, TypedDict

import plyvel

from pypi_assets.leveldbs.datasets.modules import records as modules
from pypi_assets.leveldbs.format.keys import key
from pypi_assets.leveldbs.format.records import records_of, scan
from pypi_assets.leveldbs.format.version_order import version_key
from pypi_assets.lookup.answers import Answer, Stream
from pypi_assets.lookup.lookup_command import CatalogLookup, LookupCommand, PrefixLookup
from pypi_assets.lookup.reader import Reader

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog

_REMEMBERED_ANSWERS = 256  # most modules that follow each other have the same one


class ModuleResult(TypedDict):
    """A project that provides a module: its name as displayed, and the `versions` that do, in PEP 440's order."""

    module: str
    project: str
    versions: list[str]


class ModulesReader(Reader):
    """Answers from `modules`."""

    dataset = "modules"

    def module(self, name: str) -> Answer[ModuleResult]:
        """The projects that provide the module, by normalized name."""
        start = modules.module_prefix(name)

        def found(db: plyvel.DB) -> Iterator[ModuleResult]:
            for record_key, group in records_of(db, start):
                yield _result(name, modules.read_answer(db, modules.answer_key(record_key, group)))

        return self._answer(ModuleResult, found)

    def modules(self, prefix: str = "") -> Stream[ModuleResult]:
        """All modules whose name begins with `prefix`, by name, and of each the projects that provide it."""

        def results(db: plyvel.DB) -> Iterator[ModuleResult]:
            read_answer = lru_cache(_REMEMBERED_ANSWERS)(partial(modules.read_answer, db))
            for record_key, group in scan(db, key("m", prefix)):
                value = read_answer(modules.answer_key(record_key, group))
                yield _result(record_key.decode().split("\0")[1], value)

        return self._stream(ModuleResult, results)


def module_answer(serial: int, name: str, releases: Iterable[tuple[str, str, str]]) -> Answer[ModuleResult]:
    """What `ModulesReader.module` answers where `releases` provide it: (normalized name, project, version) each."""
    names: dict[str, str] = {}
    versions: defaultdict[str, set[str]] = defaultdict(set)
    for normalized, project, version in releases:
        names[normalized] = project
        versions[normalized].add(version)
    found = ((names[one], sorted(versions[one], key=version_key)) for one in sorted(names))
    results = tuple(ModuleResult(module=name, project=project, versions=known) for project, known in found)
    return Answer(None, serial, results, ModuleResult)


def _result(module: str, value: bytes) -> ModuleResult:
    project, versions = modules.decode_answer(value)
    return ModuleResult(module=module, project=project, versions=versions)


def _module_at(catalog: "Catalog", serial: int, name: str) -> Answer[ModuleResult]:
    from pypi_assets.catalog.publications.dump_rows import providing_releases  # the database takes long to load

    return module_answer(serial, name, providing_releases(catalog, serial, name))


READER = ModulesReader
COMMANDS = (
    LookupCommand(
        name="module",
        argument="NAME",
        example="yaml",
        help="Which projects provide the module NAME, and in which versions.",
        columns=("project", "versions"),
        answer=ModulesReader.module,
        nothing_found=lambda name: f"no project provides the module {name}",
        prefix=PrefixLookup(
            columns=("module", "project", "versions"),
            stream=ModulesReader.modules,
            nothing_found=lambda prefix: f"no module begins with {prefix}",
        ),
        at_serial=CatalogLookup(("project", "versions"), _module_at),
    ),
)
