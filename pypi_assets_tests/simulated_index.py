"""An in-memory index of one project for random operations. It records what was true at each serial."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import strategies as st
from packaging.utils import canonicalize_name

from pypi_assets.catalog.derived.seen_pages import Sighting
from pypi_assets.devindex.devindex_errors import OperationRefusedError
from pypi_assets.devindex.index_state import IndexOperation, IndexState, OperationKind
from pypi_assets.devindex.uploads import UploadedFile
from pypi_assets.index.models import ChangelogEvent

AT = "2026-01-01T00:00:00.000000Z"
VERSIONS = ("1.0", "2.0")
FILES = ("demo-{version}-py3-none-any.whl", "demo-{version}.tar.gz", "demo-{version}.zip")

operation_names = st.sampled_from(
    [
        *[("add", version, name.format(version=version)) for version in VERSIONS for name in FILES],
        *[("remove-file", version, name.format(version=version)) for version in VERSIONS for name in FILES],
        *[
            (kind, version, None)
            for version in VERSIONS
            for kind in ("remove-release", "yank", "unyank", "quarantine-release", "unquarantine-release")
        ],
        *[(kind, None, None) for kind in ("remove-project", "quarantine", "unquarantine", "archive")],
    ]
)
"""The operations on the project `Demo`: (kind, version, filename)."""


@dataclass
class SimulatedIndex:
    """An index of the project `Demo`. `shown` has the files on its page after each event, by serial."""

    state: IndexState = field(default_factory=IndexState)
    shown: dict[int, Mapping[str, bool]] = field(default_factory=lambda: {0: {}})

    def do(self, kind: str, version: str | None, filename: str | None) -> None:
        """Apply the operation, unless the index rejects it in its current state."""
        file = None if kind != "add" or filename is None else _stored_file(filename)
        before = self.state.last_serial or 0
        try:
            self.state.apply(
                IndexOperation(OperationKind(kind), AT, "Demo", version, filename, owner="someone", file=file)
            )
        except OperationRefusedError:
            return
        for serial in range(before + 1, (self.state.last_serial or 0) + 1):
            self.shown[serial] = self._shown_now(serial)

    def record_event(self, action: str) -> None:
        """Record an event that changes no file, such as a change of roles."""
        project = self.state.project("Demo")
        if project is not None:
            serial = (self.state.last_serial or 0) + 1
            project.last_serial = serial
            self.state.changelog.append(ChangelogEvent("Demo", None, 0, action, serial))
            self.shown[serial] = self.shown[serial - 1]

    def _shown_now(self, serial: int) -> Mapping[str, bool]:
        """Return the files on the page at a serial. Of several events in an operation, only the last changes the
        page.
        """
        if serial != self.state.last_serial:
            return self.shown[serial - 1]
        project = self.state.project("Demo")
        releases = project.visible_releases() if project else []
        return {name: release.yanked for release in releases for name in release.files}

    @property
    def events(self) -> list[ChangelogEvent]:
        return list(self.state.changelog)

    def page(self, serial: int) -> Sighting:
        """Return the sighting of a visit of the page at `serial`, with the events stored up to that serial."""
        return Sighting(serial, serial, self.shown[serial], is_page=True)


def version_of(filename: str) -> str:
    return filename.split("-")[1].removesuffix(".tar.gz").removesuffix(".zip")


def _stored_file(filename: str) -> UploadedFile:
    digest = canonicalize_name(filename).encode().hex().ljust(64, "0")[:64]
    return UploadedFile(filename, "sdist", "source", 1, digest, digest[:32], digest, None, None, AT)
