"""Find names that several indexes have or that look alike, and the version that each installer would choose.

It reads only the catalogs. It reads the names of all indexes in the order of their skeletons (a skeleton is the same
for names that look alike), and holds only one group in memory.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from heapq import merge
from itertools import chain, groupby, islice
from operator import itemgetter

from packaging.utils import canonicalize_name

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.observed.followed import count_answered
from pypi_assets.catalog.observed.projects import project_ids
from pypi_assets.catalog.reports.live_files import (
    OfferedProject,
    known_names,
    names_by_skeleton,
    offered_projects,
)
from pypi_assets.catalog.reports.moments import answerable_serial
from pypi_assets.components import existing_catalog_from
from pypi_assets.distributions.requirements import parsed_version
from pypi_assets.errors import SettingsError
from pypi_assets.indexes import IndexTable
from pypi_assets.setting_sources import read_all_indexes, selected_index
from pypi_assets.settings import load_settings

SAME, ALIKE = "same", "alike"
_NAMES_AT_A_TIME = 500


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """An index with an open catalog, and its complete serial. `followed` is the number of followed projects; None means
    all.
    """

    name: str
    is_private: bool
    catalog: Catalog
    serial: int
    followed: int | None = None


@dataclass(slots=True)
class OpenIndexes:
    """The open indexes in the order of their file, and the reasons why other indexes could not be opened, by name."""

    opened: list[OpenIndex] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> "OpenIndexes":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, table: IndexTable) -> None:
        """Open the catalog of an index, or record why it cannot be opened."""
        try:
            with selected_index(table.name):
                settings = load_settings()
            catalog = existing_catalog_from(settings)
            self._stack.callback(catalog.close)
            serial = answerable_serial(catalog)
            with catalog.read() as connection:
                followed = count_answered(connection, serial)
        except (SettingsError, CatalogError) as error:
            self.problems[table.name] = str(error)
        else:
            self.opened.append(OpenIndex(table.name, table.is_private, catalog, serial, followed))


def open_indexes(tables: Iterable[IndexTable]) -> OpenIndexes:
    """Open the catalogs of these indexes. The result is a context manager that closes them."""
    indexes = OpenIndexes()
    for table in tables:
        indexes.add(table)
    return indexes


def require_indexes() -> tuple[IndexTable, ...]:
    """Return all indexes of the settings. Raises SettingsError if no file is set, or if it has less than two
    indexes.
    """
    indexes = read_all_indexes()
    if indexes is None or len(indexes.tables) < 2:
        raise SettingsError(
            "names can only be compared between several indexes: set PYPI_ASSETS_INDEXES to a file with them"
        )
    return indexes.tables


class HadFirst(StrEnum):
    """The order of names: whether an index had a name before all other indexes with this name."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


def had_first(times: Sequence[float | None]) -> list[HadFirst]:
    """Return for each time (unix seconds, None if unknown) whether it is before all the others.

    Events have whole seconds and uploads have fractions, so only whole seconds are compared. The order within one
    second is unknown.

    >>> [one.value for one in had_first([1767225600.9, 1767225600.0, 1767225601.0])]
    ['unknown', 'unknown', 'no']
    """
    seconds = [None if time is None else int(time) for time in times]
    earliest = min((second for second in seconds if second is not None), default=None)
    if None not in seconds and seconds.count(earliest) == 1:
        return [HadFirst.YES if second == earliest else HadFirst.NO for second in seconds]
    return [HadFirst.UNKNOWN if second in {None, earliest} else HadFirst.NO for second in seconds]


@dataclass(frozen=True, slots=True)
class Offer:
    """A project of one index. `newest` is the version that an installer with only this index would choose, or None."""

    index: str
    is_private: bool
    project: OfferedProject
    newest: str | None


@dataclass(frozen=True, slots=True)
class Confusion:
    """One name that several indexes have (`same`), or similar names of several indexes (`alike`).

    `offers` are in the order of the indexes. `pip` is the highest version of all indexes, which `pip_indexes` offer.
    `uv` is the version from `uv_index`, the first index with the name. Names that only look alike do not compete.
    """

    kind: str
    offers: tuple[Offer, ...]
    pip: str | None = None
    pip_indexes: tuple[str, ...] = ()
    uv: str | None = None
    uv_index: str | None = None

    @property
    def had_first(self) -> list[HadFirst]:
        """Return for each offer whether it was there before all others."""
        return had_first([offer.project.since for offer in self.offers])


def installed_version(releases: Mapping[str, bool]) -> str | None:
    """Return the version that pip and uv choose without a version requirement (PEP 440, PEP 592), or None if there is
    none.

    `releases` maps each version to whether it is yanked. A yanked version is never chosen. A pre-release is only chosen
    if all versions are pre-releases, including the yanked ones.

    >>> installed_version({"1.0": False, "2.0rc1": False, "1.5": True})
    '1.0'
    """
    versions = {text: version for text in releases if (version := parsed_version(text)) is not None}
    is_final = {text for text, version in versions.items() if not version.is_prerelease}
    candidates = [text for text in versions if (text in is_final or not is_final) and not releases[text]]
    return max(candidates, key=lambda text: (versions[text], text), default=None)


def confusions(indexes: Sequence[OpenIndex], only: str | None = None) -> Iterator[Confusion]:
    """Yield the names that several indexes have, and similar names, by skeleton. For each skeleton, equal names come
    first.

    With `only`, yield only the results in which the index of this name has a part.
    """
    groups = (members for members in _groups(indexes) if only is None or only in {index for index, _ in members})
    while batch := _some(groups):
        offered = _offers(indexes, batch)
        for members in batch:
            offers = [offered[member] for member in members if member in offered]
            for found in _of_group(offers):
                if only is None or any(offer.index == only for offer in found.offers):
                    yield found


_Member = tuple[str, str]
"""The name of an index, and a normalized name that it knows."""


def _groups(indexes: Sequence[OpenIndex]) -> Iterator[list[_Member]]:
    """Yield groups of names with the same skeleton that occur in more than one index."""
    with ExitStack() as stack:
        streams = [
            _numbered(names_by_skeleton(stack.enter_context(index.catalog.read())), number)
            for number, index in enumerate(indexes)
        ]
        for _, group in groupby(merge(*streams), key=itemgetter(0)):
            members = list(group)
            if len({number for _, _, number in members}) > 1:
                yield [(indexes[number].name, name) for _, name, number in sorted(members, key=itemgetter(2, 1))]


def _numbered(names: Iterable[tuple[str, str]], number: int) -> Iterator[tuple[str, str, int]]:
    return ((skeleton, name, number) for skeleton, name in names)


def _some(groups: Iterator[list[_Member]]) -> list[list[_Member]]:
    """Return the next groups, with about as many names as one query accepts."""
    taken: list[list[_Member]] = []
    count = 0
    for group in groups:
        taken.append(group)
        count += len(group)
        if count >= _NAMES_AT_A_TIME:
            break
    return taken


def _offers(indexes: Sequence[OpenIndex], groups: Sequence[Sequence[_Member]]) -> dict[_Member, Offer]:
    """Return the offers of the indexes for these names."""
    found: dict[_Member, Offer] = {}
    for index in indexes:
        names = sorted({name for known, name in chain.from_iterable(groups) if known == index.name})
        found |= {(index.name, offer.project.normalized): offer for offer in _offered(index, names)}
    return found


def _offered(index: OpenIndex, names: Sequence[str]) -> list[Offer]:
    with index.catalog.read() as connection:
        found = offered_projects(connection, index.serial, names)
    return [
        Offer(index.name, index.is_private, project, installed_version(project.releases)) for project in found.values()
    ]


def _of_group(offers: Sequence[Offer]) -> Iterator[Confusion]:
    """Yield the confusions among the names of one skeleton. `offers` are in the order of the indexes."""
    by_name: dict[str, list[Offer]] = {}
    for offer in offers:
        by_name.setdefault(offer.project.normalized, []).append(offer)
    for _, of_name in sorted(by_name.items()):
        if len(of_name) > 1:
            yield _same(of_name)
    if len(by_name) > 1 and len({offer.index for offer in offers}) > 1:
        yield Confusion(ALIKE, tuple(offers))


def _same(offers: Sequence[Offer]) -> Confusion:
    together: dict[str, bool] = {}
    for offer in offers:
        for version, is_yanked in offer.project.releases.items():
            together[version] = together.get(version, True) and is_yanked
    pip = installed_version(together)
    return Confusion(
        SAME,
        tuple(offers),
        pip,
        tuple(offer.index for offer in offers if pip is not None and _has(offer.project.releases, pip)),
        offers[0].newest,
        offers[0].index if offers[0].newest is not None else None,
    )


def _has(releases: Mapping[str, bool], wanted: str) -> bool:
    """Check whether a version equal to `wanted` in PEP 440 exists and is not yanked."""
    return any(
        parsed_version(version) == parsed_version(wanted) and not is_yanked for version, is_yanked in releases.items()
    )


@dataclass(frozen=True, slots=True)
class PublicName:
    """A name of a private index that a public index has, too.

    `private_had_first` is unknown if a time is unknown. It is also unknown if both indexes have had the name since the
    same second; then `is_same_second` is true.
    """

    private: Offer
    public: Offer

    @property
    def private_had_first(self) -> HadFirst:
        return had_first([self.private.project.since, self.public.project.since])[0]

    @property
    def is_same_second(self) -> bool:
        times = self.private.project.since, self.public.project.since
        return self.private_had_first is HadFirst.UNKNOWN and None not in times

    @property
    def may_be_new(self) -> bool:
        """Check whether the public index may have got the name after the private one, as far as the times are known."""
        return self.private_had_first is HadFirst.YES or self.is_same_second


def public_names(
    private: OpenIndex, publics: Sequence[OpenIndex], accepted: Collection[str] = ()
) -> Iterator[PublicName]:
    """Yield the names of a private index that public indexes have, too, except `accepted` names.

    The cost depends on the number of names in the private index.
    """
    wanted = {canonicalize_name(name) for name in accepted}
    with private.catalog.read() as connection:
        names = (name for name in known_names(connection) if name not in wanted)
        while some := list(islice(names, _NAMES_AT_A_TIME)):
            for public in publics:
                yield from _shared(private, public, some)


def _shared(private: OpenIndex, public: OpenIndex, names: Sequence[str]) -> Iterator[PublicName]:
    with public.catalog.read() as connection:
        known = sorted(project_ids(connection, names))
    own = {offer.project.normalized: offer for offer in _offered(private, known)}
    for offer in _offered(public, sorted(own)):
        yield PublicName(own[offer.project.normalized], offer)
