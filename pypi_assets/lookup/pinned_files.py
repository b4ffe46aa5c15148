"""What an index has of the versions that a lock pins: their files, with modules and requirements.

It is answered from the newest published versions of `depgraph` and `modules`, or from the catalog at a serial.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from pypi_assets.leveldbs.datasets.provided_names import FileNames
from pypi_assets.leveldbs.format.newest_release import newest_release
from pypi_assets.leveldbs.format.version_order import canonical_version
from pypi_assets.locks.environments import Environment
from pypi_assets.locks.pins import LockedFile, Pin, Remark, RemarkKind
from pypi_assets.lookup.depgraph_reader import DepgraphReader, Distribution, project_answer
from pypi_assets.lookup.modules_reader import ModulesReader

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog

_KINDS = ("wheel", "sdist")
"""The kinds of files that installers take."""
_SHA256 = "sha256"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class PinnedFile:
    """A file of a pinned version. `modules` are None where they are not known, as `requires_dist` are.

    `stubs` are the modules that it only describes.
    """

    filename: str
    kind: str
    sha256: str | None
    requires_python: str | None
    requires_dist: tuple[str, ...] | None
    provides_extra: tuple[str, ...]
    yanked: bool
    outcome: str
    modules: tuple[str, ...] | None
    stubs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PinnedRelease:
    """A pin, the project's name as displayed, all files of the version, and those of them that are `chosen`: what an
    installer may take in the environment.
    """

    pin: Pin
    project: str
    files: tuple[PinnedFile, ...]
    chosen: tuple[PinnedFile, ...]

    @property
    def modules(self) -> frozenset[str]:
        """The modules of the chosen files, as far as they are known."""
        return frozenset(module for file in self.chosen for module in file.modules or ())


class PinnedFiles(Protocol):
    """Where files of pinned versions come from."""

    def release(self, pin: Pin) -> tuple[str, tuple[PinnedFile, ...]] | None:
        """The project's name as displayed, and the files of the version; None where there are none."""
        ...

    def absence(self, pin: Pin) -> str:
        """Why nothing is known of a pinned version."""
        ...


class PublishedFiles:
    """Those of the newest published versions."""

    def __init__(self, depgraph: DepgraphReader, modules: ModulesReader) -> None:
        self._depgraph, self._modules = depgraph, modules
        self.serial, self.followed_projects = depgraph.serial, depgraph.followed_projects

    def remarks(self) -> Iterator[Remark]:
        """That the two datasets are of different serials, where they are."""
        if self._modules.serial != self.serial:
            yield Remark(
                RemarkKind.OTHER_SERIAL,
                f"modules are as of serial {self._modules.serial}, and files as of serial {self.serial}: run"
                " `pypi-assets leveldb update`",
            )

    def release(self, pin: Pin) -> tuple[str, tuple[PinnedFile, ...]] | None:
        found = self._depgraph.project(pin.normalized, pin.version).results
        modules = self._modules.names_of_files(pin.normalized, [one["filename"] for one in found])
        return _release(found, modules)

    def absence(self, pin: Pin) -> str:
        versions = ((one["version"], one["yanked"]) for one in self._depgraph.project(pin.normalized).results)
        return _absence(pin, self.serial, list(versions), self.followed_projects)


class FilesAtSerial:
    """Those that the catalog has as of a serial."""

    def __init__(self, catalog: "Catalog", serial: int) -> None:
        self._catalog, self.serial = catalog, serial

    def release(self, pin: Pin) -> tuple[str, tuple[PinnedFile, ...]] | None:
        from pypi_assets.catalog.publications.dump_rows import project_rows_at  # the database takes long to load
        from pypi_assets.dumps.dump_format import as_dumped

        version = canonical_version(pin.version)
        rows = [
            as_dumped(row)
            for row in project_rows_at(self._catalog, self.serial, pin.normalized)
            if canonical_version(str(row["version"])) == version
        ]
        return _release(project_answer(self.serial, rows).results, {str(row["filename"]): _names(row) for row in rows})

    def absence(self, pin: Pin) -> str:
        from pypi_assets.catalog.publications.dump_rows import version_yanks_at
        from pypi_assets.catalog.reports.project_following import following_at

        with self._catalog.read() as connection:
            following = following_at(connection, pin.normalized, self.serial)
        if following is not None and (sentence := following.sentence()):
            return f"{pin.where}: {pin.text}: {sentence}"
        versions = version_yanks_at(self._catalog, self.serial, [pin.normalized])
        return _absence(pin, self.serial, [(version, yanked) for _, version, yanked in versions], None)


def pinned_releases(
    pins: Iterable[Pin], source: PinnedFiles, environment: Environment
) -> tuple[list[PinnedRelease], list[Remark]]:
    """What is known of the pins, in their order, and remarks about what is not, or is not as the lock has it."""
    releases, remarks = [], []
    for pin in pins:
        found = source.release(pin)
        if found is None:
            remarks.append(Remark(RemarkKind.UNKNOWN, source.absence(pin), pin.normalized))
            continue
        project, files = found
        remark = partial(_remark, pin)
        locked = _locked(pin, files, remarks.append, remark)
        chosen = _chosen(locked, environment)
        releases.append(PinnedRelease(pin, project, files, chosen))
        remarks += _remarks_on(locked, chosen, remark)
    return releases, remarks


def _remark(pin: Pin, kind: RemarkKind, text: str) -> Remark:
    return Remark(kind, f"{pin.text}: {text}", pin.normalized)


def _locked(
    pin: Pin,
    files: tuple[PinnedFile, ...],
    report: Callable[[Remark], None],
    remark: Callable[[RemarkKind, str], Remark],
) -> tuple[PinnedFile, ...]:
    """Those of the files that the lock names; all, where it names none or none that the index has."""
    named = [one for one in pin.files if one.filename is not None or _SHA256 in one.hashes]
    if not named:
        return files
    by_name = {file.filename: file for file in files}
    by_hash = {file.sha256: file for file in files}
    locked: dict[str, PinnedFile] = {}
    missing = []
    for one in named:
        sha256 = one.hashes.get(_SHA256)
        file = by_hash.get(sha256) if one.filename is None else by_name.get(one.filename)
        if file is None:
            missing.append(one)
            continue
        locked[file.filename] = file
        if sha256 is not None and file.sha256 not in {None, sha256}:
            text = f"the index has {file.filename} with the sha256 {file.sha256}, and the lock with {sha256}"
            report(remark(RemarkKind.OTHER_HASH, text))
    if missing:
        left = "" if locked else ", so all files of the version count"
        text = f"{len(missing)} of {len(named)} files of the lock are not on the index: {_some(missing)}{left}"
        report(remark(RemarkKind.MISSING_FILE, text))
    return tuple(file for file in files if file.filename in locked) or files


def _some(missing: Sequence[LockedFile]) -> str:
    names = [one.filename or f"sha256:{one.hashes[_SHA256]}" for one in missing[:_SHOWN]]
    return ", ".join([*names, *(["..."] if len(missing) > _SHOWN else [])])


def _chosen(files: Sequence[PinnedFile], environment: Environment) -> tuple[PinnedFile, ...]:
    """What an installer may take: the wheels that fit, of which it is the best where all is known; else the sdists."""
    usable = [file for file in files if file.kind in _KINDS and environment.allows(file.requires_python)]
    ranks = environment.ranks(file.filename for file in usable if file.kind == "wheel")
    if ranks and environment.is_whole:
        best = min(ranks, key=lambda filename: (ranks[filename], filename))
        ranks = {best: ranks[best]}
    wheels = tuple(file for file in usable if file.filename in ranks)
    return wheels or tuple(file for file in usable if file.kind == "sdist")


def _remarks_on(
    files: Sequence[PinnedFile], chosen: Sequence[PinnedFile], remark: Callable[[RemarkKind, str], Remark]
) -> Iterator[Remark]:
    if all(file.yanked for file in files):
        yield remark(RemarkKind.YANKED, "this version is yanked")
    if not chosen:
        yield remark(RemarkKind.NO_FILE, f"none of its {len(files)} files is for this environment")
    elif chosen[0].kind == "sdist" and chosen[0].modules is not None:
        text = "no wheel can be taken, so modules are those that the sdist declares"
        yield remark(RemarkKind.FROM_SDIST, text)
    for file in chosen:
        if file.modules is None:
            text = f"the modules of {file.filename} are not known (read: {file.outcome})"
            yield remark(RemarkKind.UNREAD, text)


def _release(
    found: Sequence[Distribution], modules: Mapping[str, FileNames | None]
) -> tuple[str, tuple[PinnedFile, ...]] | None:
    files = tuple(_file(one, modules.get(one["filename"])) for one in found)
    return (found[-1]["project"], files) if files else None


def _names(row: Mapping[str, Any]) -> FileNames | None:
    if row["modules"] is None:
        return None
    return FileNames(tuple(sorted(row["modules"])), tuple(sorted(row["stubs"])))


def _file(one: Distribution, names: FileNames | None) -> PinnedFile:
    return PinnedFile(
        filename=one["filename"],
        kind=one["kind"],
        sha256=one["sha256"],
        requires_python=one["requires_python"],
        requires_dist=None if one["requires_dist"] is None else tuple(one["requires_dist"]),
        provides_extra=tuple(one["provides_extra"]),
        yanked=one["yanked"],
        outcome=one["outcome"],
        modules=None if names is None else names.names,
        stubs=() if names is None else names.stubs,
    )


def _absence(pin: Pin, serial: int, versions: Sequence[tuple[str, bool]], followed_projects: int | None) -> str:
    start = f"{pin.where}: {pin.text} is not on the index as of serial {serial}"
    if versions:
        return f"{start}; its newest version is {newest_release(versions)}"
    if followed_projects is not None:
        return f"{start}, among {followed_projects} followed projects; nothing is known of others"
    return f"{start}: there is no project of this name"
