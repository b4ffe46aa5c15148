"""The dependents of a project: the records `r REQUIRED PROJECT` of the dataset `depgraph`."""

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import orjson

from pypi_assets.distributions.installability import is_installable
from pypi_assets.distributions.requirement_names import CONDITIONS, required_projects
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets.leveldbs.format.records import Records, key, prefix
from pypi_assets.version_order import version_key


class File(NamedTuple):
    """A file of a release.

    `shared` is the JSON of the values that it may share with other files, and `own` has the values of OWN_FIELDS.
    """

    version: str
    shared: bytes
    own: Sequence[Any]


Files = dict[str, File]
"""Files by filename."""


Groups = list[tuple[list[str], Mapping[str, int]]]
"""Groups of versions with equal requirements: the versions, and the condition's rank by required project."""
RankChange = tuple[str, int | None, int | None]
"""A version, and the ranks of the condition under which it requires a project, before and after."""


class _Requirements(msgspec.Struct):
    """The part of the shared JSON with the requirements, and with the installers that reject the files."""

    requires_dist: list[str] | None
    refusals: tuple[str, ...] = ()


_requirements_decoder = msgspec.json.Decoder(_Requirements)


def dependents_prefix(project: str) -> bytes:
    """Return the beginning of the keys of all dependents of `project` (normalized).

    A dependent's normalized name follows.
    """
    return prefix("r", project)


def dependents_count_key(project: str) -> bytes:
    """Return the key of the number of projects that require `project` (normalized). Without a record it is 0."""
    return key("t", project)


def decode_dependent(value: bytes) -> tuple[list[str], list[str], list[str]]:
    """Return the versions that require it always, only by a marker, and only with an extra, each in PEP 440's order."""
    found = orjson.loads(value)
    always, marker, extra = (found.get(condition, []) for condition in CONDITIONS)
    return always, marker, extra


def group_versions(files: Iterable[File]) -> Groups:
    """Return groups of versions with equal requirements, each with its requirements.

    Files that no installer accepts count as having no requirements.
    """
    lists_of: dict[str, list[list[str]]] = {}
    for version, shared in dict.fromkeys((version, shared) for version, shared, _ in files):
        known = lists_of.setdefault(version, [])
        requirements = _requirements_in(shared)
        if requirements and requirements not in known:  # the files of a version usually share one list
            known.append(requirements)
    groups: dict[tuple[str, ...], tuple[list[str], Mapping[str, int]]] = {}
    for version, lists in lists_of.items():
        all_of_it = tuple(
            lists[0] if len(lists) == 1 else sorted({requirement for listed in lists for requirement in listed})
        )
        if all_of_it not in groups:
            groups[all_of_it] = ([], _required_projects(all_of_it))
        groups[all_of_it][0].append(version)
    return list(groups.values())


@lru_cache(maxsize=1_024)
def _required_projects(requirements: tuple[str, ...]) -> Mapping[str, int]:
    return required_projects(requirements)


@lru_cache(maxsize=1_024)
def _requirements_in(shared: bytes) -> list[str] | None:
    found = _requirements_decoder.decode(shared)
    return found.requires_dist if is_installable(found.refusals) else None


def dependent_values(groups: Groups) -> dict[str, bytes]:
    """Return the encoded versions of a project that require another one, by the other project's normalized name."""
    places: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, (_, ranks) in enumerate(groups):
        for required, rank in ranks.items():
            places[required].append((number, rank))
    values: dict[tuple[tuple[int, int], ...], bytes] = {}
    requiring = {}
    for required, found in places.items():
        shared = tuple(found)
        if shared not in values:  # usually the same versions require most of a project's requirements
            values[shared] = _encode_ranks({version: rank for number, rank in shared for version in groups[number][0]})
        requiring[required] = values[shared]
    return requiring


def rank_changes(was: Groups, will_be: Groups, versions: Iterable[str]) -> Mapping[str, list[RankChange]]:
    """Return the changed ranks of `versions`, by required project."""
    old, new = ({version: ranks for same, ranks in groups for version in same} for groups in (was, will_be))
    changes: defaultdict[str, list[RankChange]] = defaultdict(list)
    for version in versions:
        ranks, new_ranks = old.get(version, {}), new.get(version, {})
        if ranks is not new_ranks:
            for required in {**ranks, **new_ranks}:
                rank, new_rank = ranks.get(required), new_ranks.get(required)
                if rank != new_rank:
                    changes[required].append((version, rank, new_rank))
    return changes


def change_dependents(
    db: Database,
    project: str,
    changes: Mapping[str, list[RankChange]],
    known: Mapping[str, bytes] | None,
    before: Records,
    after: Records,
) -> None:
    """Add the records of the projects that this project requires to `before` and `after`.

    `known` has their previous values by required project. If it is None, they are read from `db`.
    """
    values: dict[tuple[bytes | None, tuple[RankChange, ...]], bytes | None] = {}
    for required, changed in changes.items():
        record_key = key("r", required, project)
        value = db.get(record_key, verify_checksums=True) if known is None else known.get(required)
        same = value, tuple(changed)
        if same not in values:  # usually the same versions require most of a project's requirements
            values[same] = _change_ranks(record_key, value, changed)
        new_value = values[same]
        if value is not None:
            before[record_key] = value
        if new_value is not None:
            after[record_key] = new_value


def _change_ranks(record_key: bytes, value: bytes | None, changes: Iterable[RankChange]) -> bytes | None:
    """Return the value for the ranks of versions after some of them have changed, or None if no version has a rank."""
    versions_by: tuple[list[str], ...] = ([], [], []) if value is None else decode_dependent(value)
    for version, rank, new_rank in changes:
        found = [place for place, versions in enumerate(versions_by) if version in versions]
        if found != ([] if rank is None else [rank]):
            raise LeveldbDamagedError(f"{record_key!r} does not match the requirements of version {version}")
        if rank is not None:
            versions_by[rank].remove(version)
        if new_rank is not None:
            insort(versions_by[new_rank], version, key=version_key)
    conditions = {name: versions for name, versions in zip(CONDITIONS, versions_by, strict=True) if versions}
    return orjson.dumps(conditions) if conditions else None


def _encode_ranks(ranks: Mapping[str, int]) -> bytes:
    """Return the versions of each condition in PEP 440's order, as JSON. Conditions without versions are omitted."""
    versions_by: defaultdict[int, list[str]] = defaultdict(list)
    for version in sorted(ranks, key=version_key):
        versions_by[ranks[version]].append(version)
    return orjson.dumps({CONDITIONS[rank]: versions_by[rank] for rank in sorted(versions_by)})
