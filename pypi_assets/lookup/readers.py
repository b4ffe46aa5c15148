"""Answers from one version of a dataset: which distributions provide a module, and what a project requires."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import plyvel
from packaging.utils import canonicalize_name, canonicalize_version

from pypi_assets.leveldbs import depgraph, modules
from pypi_assets.leveldbs.records import Row, damage_told, scan
from pypi_assets.leveldbs.version_order import VersionKey, version_key


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, as the index was at `serial`: in the LevelDB `version`, or elsewhere where that is None.

    Nothing is an answer too.
    """

    version: int | None
    serial: int
    results: tuple[dict[str, object], ...]


def module_answer(serial: int, releases: Iterable[tuple[str, str, str]]) -> Answer:
    """What `ModulesReader.module` answers where `releases` provide it: (normalized name, project, version) each."""
    names: dict[str, str] = {}
    versions: defaultdict[str, set[str]] = defaultdict(set)
    for normalized, project, version in releases:
        names[normalized] = project
        versions[normalized].add(version)
    found = ((names[one], sorted(versions[one], key=version_key)) for one in sorted(names))
    return Answer(None, serial, tuple({"project": project, "versions": known} for project, known in found))


def project_answer(serial: int, rows: Iterable[Row], version: str | None = None) -> Answer:
    """What `DepgraphReader.project` answers of the rows of a project's live distributions, as dumps give them."""
    found = [depgraph.told(row) for row in rows if _is_wanted(row["version"], version)]
    return Answer(None, serial, tuple(sorted(found, key=_by_version)))


def _is_wanted(version: str, wanted: str | None) -> bool:
    return wanted is None or canonicalize_version(version) == canonicalize_version(wanted)


def _by_version(result: dict[str, object]) -> tuple[VersionKey, str]:
    return version_key(str(result["version"])), str(result["filename"])


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
        with damage_told(self._name):
            found = [
                depgraph.decode_distribution(key, value)
                for key, value in scan(self._db, depgraph.project_prefix(canonicalize_name(name)))
                if _is_wanted(depgraph.version_of(key), version)
            ]
        return self._answer(sorted(found, key=_by_version))

    def dependents(self, name: str) -> Answer:
        """The projects that require a project, by normalized name; it is compared normalized.

        Results: `normalized`, and the versions that require it `always`, only by a `marker`, and only with an `extra`,
        each in PEP 440's order. Raises LeveldbDamagedError.
        """
        start = depgraph.dependents_prefix(canonicalize_name(name))
        with damage_told(self._name):
            found = [(key.removeprefix(start).decode(), value) for key, value in scan(self._db, start)]
        return self._answer([{"normalized": one, **depgraph.decode_dependent(value)} for one, value in found])
