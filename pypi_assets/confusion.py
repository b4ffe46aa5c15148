"""Names that several indexes have, or that look alike across them, and whose files each installer would take.

It reads only the catalogs. With the names of all indexes in order of their skeletons, it keeps one group at a time.
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
from pypi_assets.setting_variables import read_all_indexes, selected_index
from pypi_assets.settings import load_settings

SAME, ALIKE = "same", "alike"
_NAMES_AT_A_TIME = 500


@dataclass(frozen=True, slots=True)
class OpenIndex:
    """An index whose catalog is open, with its complete serial. `followed` is how many projects are; None: all."""

    name: str
    is_private: bool
    catalog: Catalog
    serial: int
    followed: int | None = None


@dataclass(slots=True)
class OpenIndexes:
    """Indexes in the order of their file, and why others could not be opened, by name."""

    opened: list[OpenIndex] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> "OpenIndexes":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, table: IndexTable) -> None:
        """Opens the catalog of an index, or records why it cannot be."""
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
    """Opens the catalogs of these indexes; a context manager, which closes them."""
    indexes = OpenIndexes()
    for table in tables:
        indexes.add(table)
    return indexes


def require_indexes() -> tuple[IndexTable, ...]:
    """All indexes of the settings. Raises SettingsError where there is no file, or less than two."""
    indexes = read_all_indexes()
    if indexes is None or len(indexes.tables) < 2:
        raise SettingsError("names are compared between several indexes: PYPI_ASSETS_INDEXES names a file of them")
    return indexes.tables


class HadFirst(StrEnum):
    """Whether an index had a name before the other indexes that have it."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


def had_first(times: Sequence[float | None]) -> list[HadFirst]:
    """Return for each of these times (unix seconds, None: not known) whether it is before all the others.

    Events have whole seconds and uploads have fractions, so only whole seconds are compared: nothing is known of the
    order within one second.

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
    """A project of one index. `newest` is what an installer takes that sees this index alone; None: nothing."""

    index: str
    is_private: bool
    project: OfferedProject
    newest: str | None


@dataclass(frozen=True, slots=True)
class Confusion:
    """One name that several indexes have, of the kind `same`, or names of several that look alike, of the kind `alike`.

    `offers` are in the order of the indexes. `pip` takes the highest version over all, which the indexes `pip_indexes`
    have; `uv` takes that of the first index with the name, `uv_index`. Names that only look alike do not compete.
    """

    kind: str
    offers: tuple[Offer, ...]
    pip: str | None = None
    pip_indexes: tuple[str, ...] = ()
    uv: str | None = None
    uv_index: str | None = None

    @property
    def had_first(self) -> list[HadFirst]:
        """Whether each of the offers was there before the others, in their order."""
        return had_first([offer.project.since for offer in self.offers])


def installed_version(releases: Mapping[str, bool]) -> str | None:
    """The version that pip and uv take of these without a requirement on it, as PEP 440 and PEP 592 have it; None where
    there is none. `releases` has whether each version is yanked.

    A pre-release is taken only where there is nothing else, and yanked ones count in that; a yanked one never is.

    >>> installed_version({"1.0": False, "2.0rc1": False, "1.5": True})
    '1.0'
    """
    versions = {text: version for text in releases if (version := parsed_version(text)) is not None}
    is_final = {text for text, version in versions.items() if not version.is_prerelease}
    candidates = [text for text in versions if (text in is_final or not is_final) and not releases[text]]
    return max(candidates, key=lambda text: (versions[text], text), default=None)


def confusions(indexes: Sequence[OpenIndex], only: str | None = None) -> Iterator[Confusion]:
    """All names that more than one of the indexes has, and those that look alike, by skeleton; of those the same first.

    With `only`, those that the index of this name has a part in.
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
    """The names with equal skeletons, where more than one index knows one of them."""
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
    """The next groups, with about as many names as one query takes."""
    taken: list[list[_Member]] = []
    count = 0
    for group in groups:
        taken.append(group)
        count += len(group)
        if count >= _NAMES_AT_A_TIME:
            break
    return taken


def _offers(indexes: Sequence[OpenIndex], groups: Sequence[Sequence[_Member]]) -> dict[_Member, Offer]:
    """What the indexes offer under these names."""
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
    """What names of one skeleton have in common across indexes. `offers` are in the order of the indexes."""
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
    """Whether there is a release that PEP 440 holds equal, and that is not yanked."""
    return any(
        parsed_version(version) == parsed_version(wanted) and not is_yanked for version, is_yanked in releases.items()
    )


@dataclass(frozen=True, slots=True)
class PublicName:
    """A name of a private index that a public one has too.

    `private_had_first` is unknown if a time is, or if both indexes have had the name since the same second: then
    `is_same_second`.
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
        """Whether the public index may have the name only after the private one, as far as times are known."""
        return self.private_had_first is HadFirst.YES or self.is_same_second


def public_names(
    private: OpenIndex, publics: Sequence[OpenIndex], accepted: Collection[str] = ()
) -> Iterator[PublicName]:
    """The names of a private index that public ones have too, but `accepted` ones. What it costs depends on how many
    names the private index has.
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
