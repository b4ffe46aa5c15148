"""The state of the index, computed by replaying the operations of its history in order.

This is a pure replay: each operation is checked against the state before it changes anything, and it writes changelog
rows and increases serials exactly as the server that runs PyPI does. This module accesses no files.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from packaging.utils import canonicalize_name, canonicalize_version
from packaging.version import InvalidVersion, Version

from pypi_assets.devindex.devindex_errors import OperationRefusedError
from pypi_assets.devindex.uploads import UploadedFile
from pypi_assets.index.models import ChangelogEvent


class OperationKind(StrEnum):
    """The operations on the index."""

    ADD = "add"
    REMOVE_FILE = "remove-file"
    REMOVE_RELEASE = "remove-release"
    REMOVE_PROJECT = "remove-project"
    YANK = "yank"
    UNYANK = "unyank"
    QUARANTINE = "quarantine"
    UNQUARANTINE = "unquarantine"
    QUARANTINE_RELEASE = "quarantine-release"
    UNQUARANTINE_RELEASE = "unquarantine-release"
    ARCHIVE = "archive"
    UNARCHIVE = "unarchive"


@dataclass(frozen=True, slots=True)
class IndexOperation:
    """One line of the history: an operation, its time (ISO 8601 in UTC, ending in Z) and its object.

    An upload with `own_release` creates a release for its exact version, as all uploads did before March 2018. Then
    `1.0` and `1.0.0` are two releases. With `during_quarantine`, an upload is accepted while its project or release is
    hidden.
    """

    kind: OperationKind
    at: str
    project: str
    version: str | None = None
    filename: str | None = None
    reason: str | None = None
    owner: str | None = None
    file: UploadedFile | None = None
    own_release: bool = False
    during_quarantine: bool = False

    def as_record(self) -> dict[str, Any]:
        """Return the operation as a JSON object for the history."""
        return {key: value for key, value in asdict(self).items() if value is not None and value is not False}

    @classmethod
    def from_record(cls, record: dict[str, Any]) -> "IndexOperation":
        """Return the operation of a JSON object; raise TypeError, ValueError or KeyError if it is not valid."""
        file = record.get("file")
        return cls(**{**record, "kind": OperationKind(record["kind"]), "file": UploadedFile(**file) if file else None})


class ProjectStatus(StrEnum):
    """A project's status, as its page shows it (PEP 792)."""

    ACTIVE = "active"
    ARCHIVED = "archived"
    QUARANTINED = "quarantined"


@dataclass(slots=True)
class IndexRelease:
    """A version of a project. It remains after its last file is removed, until the release itself is removed."""

    version: str
    files: dict[str, UploadedFile] = field(default_factory=dict)
    yanked: bool = False
    yanked_reason: str | None = None
    quarantined: bool = False
    _order: tuple[int, Any] | None = None

    @property
    def order(self) -> tuple[int, Any]:
        """Return a sort key for versions; versions that are not valid in PEP 440 come first."""
        if self._order is None:
            try:
                self._order = (1, Version(self.version))
            except InvalidVersion:
                self._order = (0, self.version)
        return self._order

    @property
    def is_prerelease(self) -> bool:
        known, version = self.order
        return bool(known and version.is_prerelease)


@dataclass(slots=True)
class IndexProject:
    """A project. `name` has the spelling of the last upload, and `releases` are by their exact version."""

    name: str
    owner: str
    last_serial: int = 0
    status: ProjectStatus = ProjectStatus.ACTIVE
    releases: dict[str, IndexRelease] = field(default_factory=dict)
    _spellings: dict[str, list[str]] = field(default_factory=dict)

    def find_release(self, version: str) -> IndexRelease | None:
        """Return the release of a version: the exact spelling, or else an equal version in another spelling."""
        if version in self.releases:
            return self.releases[version]
        equal = self._spellings.get(canonicalize_version(version), [])
        return self.releases[equal[0]] if equal else None

    def add_release(self, version: str) -> IndexRelease:
        release = self.releases[version] = IndexRelease(version)
        self._spellings.setdefault(canonicalize_version(version), []).append(version)
        return release

    def remove_release(self, version: str) -> None:
        del self.releases[version]
        self._spellings[canonicalize_version(version)].remove(version)

    def visible_releases(self) -> list[IndexRelease]:
        """Return the releases that the index shows, in the order of their versions."""
        if self.status is ProjectStatus.QUARANTINED:
            return []
        return sorted((one for one in self.releases.values() if not one.quarantined), key=lambda one: one.order)


class IndexState:
    """The projects, changelog and files after the operations that were applied."""

    def __init__(self) -> None:
        self.projects: dict[str, IndexProject] = {}
        self.changelog: list[ChangelogEvent] = []
        self.files: dict[str, UploadedFile] = {}
        self._releases_by_filename: dict[str, tuple[str, str]] = {}
        self._filenames: set[str] = set()

    @property
    def last_serial(self) -> int | None:
        """Return the serial of the last changelog row, or None if the index is empty."""
        return self.changelog[-1].serial if self.changelog else None

    def changelog_since(self, serial: int, limit: int) -> list[ChangelogEvent]:
        """Return the first `limit` rows after `serial`. Serials are 1, 2, 3 ..., so they are positions in the list."""
        start = max(serial, 0)
        return self.changelog[start : start + limit]

    def serial_at(self, moment: float) -> int:
        """Return the last serial at `moment` (unix seconds), or 0 before the first. Rows have whole seconds."""
        rows = reversed(self.changelog)
        return next((event.serial for event in rows if event.timestamp <= moment), 0)

    def project(self, name: str) -> IndexProject | None:
        """Return the project with that name, which need not be normalized."""
        return self.projects.get(canonicalize_name(name))

    def locate(self, filename: str) -> tuple[str, str]:
        """Return the normalized project and the release (its exact version) that have a file now.

        Raises OperationRefusedError if there is none.
        """
        try:
            return self._releases_by_filename[filename]
        except KeyError:
            raise OperationRefusedError(f"no file {filename} on the index; check its name") from None

    def apply(self, operation: IndexOperation) -> None:
        """Apply `operation`. Raises OperationRefusedError, before anything has changed, if it is not valid."""
        _APPLY[operation.kind](self, operation)

    def _log(self, operation: IndexOperation, project: IndexProject, version: str | None, action: str) -> None:
        timestamp = int(datetime.fromisoformat(operation.at).timestamp())
        project.last_serial = len(self.changelog) + 1
        self.changelog.append(ChangelogEvent(project.name, version, timestamp, action, project.last_serial))

    def _project(self, operation: IndexOperation) -> IndexProject:
        project = self.project(operation.project)
        if project is None:
            raise OperationRefusedError(f"no project {operation.project} on the index; check its name")
        return project

    def _release(self, operation: IndexOperation) -> tuple[IndexProject, IndexRelease]:
        project = self._project(operation)
        version = operation.version or ""
        release = project.find_release(version)
        if release is None:
            known = ", ".join(one.version for one in project.releases.values()) or "none"
            raise OperationRefusedError(f"project {project.name} has no release {version}; it has {known}")
        return project, release

    def _add(self, operation: IndexOperation) -> None:
        file, version, owner = operation.file, operation.version, operation.owner
        if file is None or version is None or owner is None:
            raise ValueError("an add operation without file, version or owner")
        if file.filename in self._filenames:
            raise OperationRefusedError(
                f"{file.filename} was on the index before, and a filename cannot be used again: rename the file"
            )
        normalized = canonicalize_name(operation.project)
        project = self.projects.get(normalized)
        release = None
        if project is not None:
            release = project.releases.get(version) if operation.own_release else project.find_release(version)
            self._require_open(operation, project, release)
        if project is None:
            project = self.projects[normalized] = IndexProject(operation.project, owner)
            self._log(operation, project, None, "create")
            self._log(operation, project, None, f"add Owner {owner}")
        project.name = operation.project  # the changelog has no row for this
        if release is None:
            release = project.add_release(version)
            self._log(operation, project, release.version, "new release")
        release.files[file.filename] = file
        self.files[file.path] = file
        self._filenames.add(file.filename)
        self._releases_by_filename[file.filename] = (normalized, release.version)
        self._log(operation, project, release.version, f"add {file.python_version} file {file.filename}")

    def _require_open(self, operation: IndexOperation, project: IndexProject, release: IndexRelease | None) -> None:
        """Raise OperationRefusedError if an upload is not accepted."""
        is_hidden = project.status is ProjectStatus.QUARANTINED
        if project.status is not ProjectStatus.ACTIVE and not (is_hidden and operation.during_quarantine):
            raise OperationRefusedError(
                f"project {project.name} is {project.status} and accepts no files; make it active first"
            )
        if release is not None and release.quarantined and not operation.during_quarantine:
            raise OperationRefusedError(
                f"release {project.name} {release.version} is quarantined and accepts no files; unquarantine it first"
            )

    def _remove_file(self, operation: IndexOperation) -> None:
        filename = operation.filename or ""
        normalized, version = self.locate(filename)
        project = self.projects[normalized]
        release = project.releases[version]
        del release.files[filename]
        del self._releases_by_filename[filename]
        self._log(operation, project, release.version, f"remove file {filename}")

    def _remove_release(self, operation: IndexOperation) -> None:
        project, release = self._release(operation)
        project.remove_release(release.version)
        self._forget_files(release)
        self._log(operation, project, release.version, "remove release")

    def _remove_project(self, operation: IndexOperation) -> None:
        project = self._project(operation)
        del self.projects[canonicalize_name(project.name)]
        for release in project.releases.values():
            self._forget_files(release)
        self._log(operation, project, None, "remove project")

    def _forget_files(self, release: IndexRelease) -> None:
        for filename in release.files:
            del self._releases_by_filename[filename]

    def _yank(self, operation: IndexOperation) -> None:
        project, release = self._release(operation)
        if release.yanked:
            raise OperationRefusedError(f"release {project.name} {release.version} is yanked already")
        release.yanked, release.yanked_reason = True, operation.reason or None
        self._log(operation, project, release.version, "yank release")

    def _unyank(self, operation: IndexOperation) -> None:
        project, release = self._release(operation)
        if not release.yanked:
            raise OperationRefusedError(f"release {project.name} {release.version} is not yanked")
        release.yanked, release.yanked_reason = False, None
        self._log(operation, project, release.version, "unyank release")

    def _quarantine_release(self, operation: IndexOperation) -> None:
        project, release = self._release(operation)
        if release.quarantined:
            raise OperationRefusedError(f"release {project.name} {release.version} is quarantined already")
        release.quarantined = True
        self._log(operation, project, release.version, "release quarantined")

    def _unquarantine_release(self, operation: IndexOperation) -> None:
        project, release = self._release(operation)
        if not release.quarantined:
            raise OperationRefusedError(f"release {project.name} {release.version} is not quarantined")
        release.quarantined = False
        self._log(operation, project, release.version, "release quarantine cleared")

    def _quarantine(self, operation: IndexOperation) -> None:
        project = self._project(operation)
        if project.status is ProjectStatus.QUARANTINED:
            raise OperationRefusedError(f"project {project.name} is quarantined already")
        project.status = ProjectStatus.QUARANTINED
        self._log(operation, project, None, "project quarantined")

    def _unquarantine(self, operation: IndexOperation) -> None:
        project = self._project(operation)
        if project.status is not ProjectStatus.QUARANTINED:
            raise OperationRefusedError(f"project {project.name} is not quarantined")
        project.status = ProjectStatus.ACTIVE
        self._log(operation, project, None, "project quarantine cleared")

    def _archive(self, operation: IndexOperation) -> None:
        project = self._project(operation)
        if project.status is not ProjectStatus.ACTIVE:
            raise OperationRefusedError(
                f"project {project.name} is {project.status}; only an active project can be archived"
            )
        project.status = ProjectStatus.ARCHIVED

    def _unarchive(self, operation: IndexOperation) -> None:
        project = self._project(operation)
        if project.status is not ProjectStatus.ARCHIVED:
            raise OperationRefusedError(f"project {project.name} is not archived")
        project.status = ProjectStatus.ACTIVE


_APPLY: dict[OperationKind, Callable[[IndexState, IndexOperation], None]] = {
    OperationKind.ADD: IndexState._add,
    OperationKind.REMOVE_FILE: IndexState._remove_file,
    OperationKind.REMOVE_RELEASE: IndexState._remove_release,
    OperationKind.REMOVE_PROJECT: IndexState._remove_project,
    OperationKind.YANK: IndexState._yank,
    OperationKind.UNYANK: IndexState._unyank,
    OperationKind.QUARANTINE: IndexState._quarantine,
    OperationKind.UNQUARANTINE: IndexState._unquarantine,
    OperationKind.QUARANTINE_RELEASE: IndexState._quarantine_release,
    OperationKind.UNQUARANTINE_RELEASE: IndexState._unquarantine_release,
    OperationKind.ARCHIVE: IndexState._archive,
    OperationKind.UNARCHIVE: IndexState._unarchive,
}
