"""Decides whether a dataset needs a new version: one rule for publishing, sensors, status, checks and metrics.

`build_need` is pure: it compares the published version with the dumps in use. Acting on the result does not belong
here: `publish.py` builds, and `upkeep/due.py` collects the pending work of all stages.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pypi_assets.catalog.publications.dump_registry import Dump
from pypi_assets.dumps.cover import Cover
from pypi_assets.dumps.held_dumps import HeldDumps
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError, NotBuiltYetError, UnknownFormatError
from pypi_assets.leveldbs.versions.input_lists import published_versions, read_input_list
from pypi_assets.leveldbs.versions.leveldb_manifest import LeveldbManifest, PublishedVersion, read_listed
from pypi_assets.storage.store import Storage

_NAMED_DUMPS = 3


def missing_columns(dataset: Dataset, columns_of: Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
    """Return the columns that `dataset` needs and a dump lacks, by the dump's directory. Complete dumps are omitted.

    `columns_of` has the columns of each dump of a cover, by directory.
    """
    lacking = {
        directory: tuple(column for column in dataset.columns if column not in columns)
        for directory, columns in columns_of.items()
    }
    return {directory: columns for directory, columns in lacking.items() if columns}


def not_built_yet(
    dataset: Dataset, missing: Mapping[str, Collection[str]], unreadable: Sequence[str] = ()
) -> NotBuiltYetError:
    """Return the error that names the dumps and columns from `missing_columns`, and the remedy.

    Older records lack the values of new columns, so a reprocess comes first. Without older records, it changes nothing.
    `unreadable` are the reasons why published versions cannot be read.

        >>> str(not_built_yet(COMMANDS, {"0-7": ("console_scripts",)}))
        'commands is not built yet: 1 dump of the cover (0-7) lacks the column console_scripts; run ...'
    """
    columns = list(dict.fromkeys(column for lacking in missing.values() for column in lacking))
    dumps = "1 dump" if len(missing) == 1 else f"{len(missing)} dumps"
    named = ", ".join(list(missing)[:_NAMED_DUMPS]) + (", ..." if len(missing) > _NAMED_DUMPS else "")
    lack = "lacks" if len(missing) == 1 else "lack"
    those = f"column{'s' if len(columns) > 1 else ''} {', '.join(columns)}"
    return NotBuiltYetError(
        f"{dataset.name} is not built yet: {dumps} of the cover ({named}) {lack} the {those}; run"
        " `pypi-assets admin reprocess`, `pypi-assets dump redo` and `pypi-assets leveldb update`, in this order"
        + (f" ({'; '.join(unreadable)})" if unreadable else "")
    )


class Need(StrEnum):
    """The newest version of a dataset, compared with the cover."""

    HELD = "held"
    """It has exactly the dumps of the cover."""
    NO_DUMPS = "no dumps"
    """There is no full dump to build from."""
    LACKS_COLUMNS = "lacks columns"
    """Some dumps of the cover lack columns that the dataset needs, so it cannot be built."""
    NO_VERSION = "no version"
    """No version is published."""
    UNREADABLE = "unreadable"
    """The newest version cannot be read, so the next one is built from scratch."""
    OTHER_FORMAT = "other format"
    """The newest version has another format than this code builds."""
    NEW_DUMPS = "new dumps"
    """The cover has grown: the newest version can be built on."""
    OTHER_DUMPS = "other dumps"
    """The newest version has a dump that was replaced, so the next one is built from scratch."""


@dataclass(frozen=True, slots=True)
class BuildNeed:
    """The result for one dataset, with the reason as a sentence.

    `version` and `serial` describe the newest readable version. `dumps` are the dumps to apply: to that version for
    `NEW_DUMPS`, and otherwise to an empty LevelDB. If dumps lack columns, the reason names them and the commands to
    run.
    """

    dataset: str
    need: Need
    reason: str
    version: int | None
    serial: int | None
    dumps: tuple[Dump, ...] = ()

    @property
    def is_due(self) -> bool:
        """True if a build now would publish a version."""
        return self.need not in {Need.HELD, Need.NO_DUMPS, Need.LACKS_COLUMNS}

    @property
    def is_buildable(self) -> bool:
        """True if a build is possible now, whether it is due or not."""
        return self.need not in {Need.NO_DUMPS, Need.LACKS_COLUMNS}


def build_need(
    dataset: Dataset, newest: LeveldbManifest | None, cover: Cover, problems: Sequence[str] = ()
) -> BuildNeed:
    """Return what `dataset` needs. `newest` is the manifest of its newest version, or None.

    `problems` name newer versions that cannot be read. They are the reason if `newest` is None. The leaves of the cover
    are compared, and a compaction counts as its inputs. So a dump that replaces another dump of the same range makes a
    difference, and a compaction does not.
    """
    version, serial = (None, None) if newest is None else (newest.version, newest.serial)

    def answer(need: Need, reason: str, dumps: tuple[Dump, ...] = ()) -> BuildNeed:
        return BuildNeed(dataset.name, need, reason, version, serial, dumps)

    if not cover.dumps:
        return answer(Need.NO_DUMPS, "there is no full dump to build from")
    is_known_format = newest is not None and newest.dataset_format == dataset.format
    held = None if newest is None else HeldDumps.decode(newest.held)
    if newest is not None and is_known_format and held == HeldDumps.of(cover.dumps):
        return answer(Need.HELD, f"nothing is new since version {newest.version}")
    if missing := missing_columns(dataset, {dump.directory: dump.columns for dump in cover.dumps}):
        return answer(Need.LACKS_COLUMNS, str(not_built_yet(dataset, missing, () if newest else problems)))
    if newest is None:
        unreadable = "; ".join(problems)
        need = Need.UNREADABLE if unreadable else Need.NO_VERSION
        return answer(need, unreadable or "there is no version yet", cover.dumps)
    name = f"version {newest.version} of {dataset.name}"
    if not is_known_format:
        text = f"version {newest.version} cannot be built on: {name} is in format {newest.dataset_format}"
        return answer(Need.OTHER_FORMAT, text, cover.dumps)
    following = None if held is None else held.following(cover.dumps)
    if following is None:
        text = f"a new full dump replaced dumps that {name} was built on"
        return answer(Need.OTHER_DUMPS, text, cover.dumps)
    return answer(Need.NEW_DUMPS, f"{len(following)} dumps follow what {name} holds", following)


LEAST_ROWS_TO_REBUILD = 5_000


def is_rebuild_cheaper(dataset: Dataset, changed: int, count_all: Callable[[], int]) -> bool:
    """Check whether building from scratch takes less time than updating a version with `changed` rows.

    `count_all` returns the number of rows of all dumps, and is called only if it can matter. If they are few, both take
    little time, and an update shares the files of its base.
    """
    as_rebuilt = changed * dataset.update_cost
    return as_rebuilt > LEAST_ROWS_TO_REBUILD and LEAST_ROWS_TO_REBUILD <= count_all() < as_rebuilt


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest readable version, and the problems of versions after it."""

    published: PublishedVersion | None
    problems: tuple[str, ...]

    @property
    def manifest(self) -> LeveldbManifest | None:
        return self.published.manifest if self.published else None


def newest_version(storage: Storage, dataset: str, versions: Sequence[int] | None = None) -> Newest:
    """Return the newest of `versions` with a readable input list, if its manifest is readable too.

    If `versions` is None, all published versions are considered. An older version would not do, since its own files can
    be deleted at any moment. Reads a listing of the input lists, an input list and a manifest, however many versions
    there are. Raises StorageError.
    """
    problems: list[str] = []
    for version in reversed(published_versions(storage, dataset) if versions is None else versions):
        inputs = None
        try:
            inputs = read_input_list(storage, dataset, version)
            return Newest(read_listed(storage, inputs), tuple(problems))
        except (LeveldbDamagedError, UnknownFormatError) as error:
            problems.append(f"version {version} cannot be built on: {error}")
            if inputs is not None:
                break
    return Newest(None, tuple(problems))
