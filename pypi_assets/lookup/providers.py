"""Queries from a name to the projects and versions that provide it, for the datasets `modules` and `commands`."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache, partial
from itertools import islice
from typing import NamedTuple

from packaging.utils import canonicalize_name

from pypi_assets.leveldbs.datasets import provided_names
from pypi_assets.leveldbs.datasets.provided_names import FileNames
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.records import first_records, records_of, scan, scan_after
from pypi_assets.lookup.reader import DatasetReader, OpenVersion, require_text
from pypi_assets.version_order import version_key

_REMEMBERED_ANSWERS = 256  # consecutive names mostly share one answer


class Provider(NamedTuple):
    """A project (`normalized`, and `project` as displayed) that provides `name`.

    `versions` are the versions that provide it, in PEP 440 order.
    """

    name: str
    normalized: str
    project: str
    versions: list[str]


class NamesReader(DatasetReader):
    """Base class of the readers of `modules` and `commands`."""

    names_start = provided_names.names_prefix("")

    def some_providers(self, name: str, most: int) -> list[Provider]:
        """Return the first `most` projects that provide `name`, by normalized name."""
        require_text("some_providers", name)

        def found(db: Database) -> list[Provider]:
            records = scan(db, provided_names.name_prefix(name))
            return list(_providers(db, islice(records, most)))

        return self._read(found)[1]

    def _few(self, name: str, most: int) -> tuple[OpenVersion, list[Provider]] | None:
        """Return all projects that provide `name`, with the open version, or None if there are more than `most`.

        It reads one record for each project and one more. It raises an error if the version is corrupt: it never looks
        for another one.
        """
        opened = self._current()
        records = first_records(opened.db, provided_names.name_prefix(name), most + 1)
        return None if len(records) > most else (opened, list(_providers(opened.db, records)))

    def names_of(self, project: str, most: int) -> list[str]:
        """Return at most `most` names that a project provides in any of its versions, in no particular order.

        At most `most` records are read.

        >>> modules.names_of("PyYAML", 2)
        ['_yaml', 'yaml']
        """
        start = provided_names.project_prefix(canonicalize_name(require_text("names_of", project)))

        def found(db: Database) -> list[str]:
            groups = (provided_names.decode_group(value) for _, value in islice(scan(db, start), most))
            return list(islice((name for group in groups for name in group), most))

        return self._read(found)[1]

    def names_in(self, project: str) -> list[tuple[list[str], frozenset[str]]]:
        """Return the names that a project provides, grouped by the versions that provide them."""
        normalized = canonicalize_name(require_text("names_in", project))
        start = provided_names.project_prefix(normalized)

        def found(db: Database) -> list[tuple[list[str], frozenset[str]]]:
            groups = []
            for group_key, value in records_of(db, start):
                answer = provided_names.read_answer(db, b"g" + group_key[1:])
                groups.append((provided_names.decode_group(value), frozenset(provided_names.decode_answer(answer)[1])))
            return groups

        return self._read(found)[1]

    def names_of_files(self, project: str, filenames: Collection[str]) -> dict[str, FileNames | None]:
        """Return the names that each of these files of a project provides, or None for a file whose names are unknown.

        >>> modules.names_of_files("PyYAML", ["PyYAML-6.0.2.tar.gz"])
        {'PyYAML-6.0.2.tar.gz': FileNames(names=('_yaml', 'yaml', ...), stubs=())}

        Files that the dataset lacks are omitted.
        """
        normalized = canonicalize_name(require_text("names_of_files", project))
        return self._read(lambda db: provided_names.names_of_files(db, normalized, filenames))[1]


def providers(db: Database, name: str) -> Iterator[Provider]:
    """Return the projects that provide `name`, by normalized name."""
    return _providers(db, records_of(db, provided_names.name_prefix(name)))


def provider_of_stub(db: Database, name: str, project: str) -> Provider | None:
    """Return `project` (normalized) as a provider of stubs for the module `name`, or None if it has none."""
    stub_key = provided_names.stub_key(name, project)
    group = db.get(stub_key, verify_checksums=True)
    if group is None:
        return None
    return _provider(stub_key, provided_names.read_answer(db, provided_names.answer_key(stub_key, group)))


def _providers(db: Database, records: Iterable[tuple[bytes, bytes]]) -> Iterator[Provider]:
    for name_key, group in records:
        answer = provided_names.read_answer(db, provided_names.answer_key(name_key, group))
        yield _provider(name_key, answer)


def all_providers(db: Database, beginning: str, after: tuple[str, str] | None = None) -> Iterator[Provider]:
    """Yield the projects that provide a name that begins with `beginning`, by name and normalized project name.

    `after` is a name and a normalized project name: the result begins after this pair.
    """
    read_answer = lru_cache(_REMEMBERED_ANSWERS)(partial(provided_names.read_answer, db))
    start = provided_names.names_prefix(beginning)
    records = scan(db, start) if after is None else scan_after(db, start, provided_names.name_key(*after))
    for name_key, group in records:
        yield _provider(name_key, read_answer(provided_names.answer_key(name_key, group)))


def providers_of_releases(name: str, releases: Iterable[tuple[str, str, str]]) -> Iterator[Provider]:
    """Yield the projects that provide `name`. A release is (normalized name, project, version)."""
    projects: dict[str, str] = {}
    versions: defaultdict[str, set[str]] = defaultdict(set)
    for normalized, project, version in releases:
        projects[normalized] = project
        versions[normalized].add(version)
    for normalized in sorted(projects):
        yield Provider(name, normalized, projects[normalized], sorted(versions[normalized], key=version_key))


def _provider(name_key: bytes, answer: bytes) -> Provider:
    name, normalized = provided_names.split_name_key(name_key)
    project, versions = provided_names.decode_answer(answer)
    return Provider(name, normalized, project, versions)
