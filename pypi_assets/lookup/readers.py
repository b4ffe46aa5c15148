"""Answers from one version of a dataset: which distributions provide a module, and what a project requires."""

from collections.abc import Callable
from dataclasses import dataclass

import plyvel
from packaging.utils import canonicalize_name, canonicalize_version

from pypi_assets.leveldbs import depgraph, modules
from pypi_assets.leveldbs.records import damage_told, scan
from pypi_assets.leveldbs.version_order import version_key


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, in the LevelDB `version` that shows the index as it was at `serial`. Nothing is an answer too."""

    version: int
    serial: int
    results: tuple[dict[str, object], ...]


class Reader:
    """An open version of a dataset. It is a context manager; `close` removes its private copy.

    `skipped` tells of each newer version why it was not opened.
    """

    def __init__(
        self, db: plyvel.DB, name: str, version: int, serial: int, skipped: tuple[str, ...], close: Callable[[], None]
    ) -> None:
        self._db, self._name = db, name
        self.version, self.serial, self.skipped, self.close = version, serial, skipped, close

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer(self, results: list[dict[str, object]]) -> Answer:
        return Answer(self.version, self.serial, tuple(results))


class ModulesReader(Reader):
    """Answers from `modules`."""

    def __enter__(self) -> "ModulesReader":
        return self

    def module(self, name: str) -> Answer:
        """The projects that provide the module, by normalized name.

        Results: `project` as displayed, `versions` that provide it, in PEP 440's order. Raises LeveldbDamagedError.
        """
        with damage_told(self._name):
            found = [modules.decode_module(value) for _, value in scan(self._db, modules.module_prefix(name))]
        return self._answer([{"project": project, "versions": versions} for project, versions in found])


class DepgraphReader(Reader):
    """Answers from `depgraph`."""

    def __enter__(self) -> "DepgraphReader":
        return self

    def project(self, name: str, version: str | None = None) -> Answer:
        """The distributions of a project, or of one version of it, by version (PEP 440) and filename.

        Names are compared normalized and versions canonically. The results' fields are those of docs/formats.md:
        `requires_dist` None means unknown. Raises LeveldbDamagedError.
        """
        wanted = None if version is None else canonicalize_version(version)
        with damage_told(self._name):
            found = [
                depgraph.decode_distribution(key, value)
                for key, value in scan(self._db, depgraph.project_prefix(canonicalize_name(name)))
                if wanted is None or canonicalize_version(depgraph.version_of(key)) == wanted
            ]
        return self._answer(sorted(found, key=lambda row: (version_key(str(row["version"])), str(row["filename"]))))
