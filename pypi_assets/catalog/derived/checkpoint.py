"""Checkpoints: the stored state of a project at a serial, from which later visits continue instead of the first event.

Any checkpoint can be discarded: the next visit creates a new one.
"""

import zlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, delete, select

from pypi_assets.catalog.database import at_a_time, upsert
from pypi_assets.catalog.derived.project_state import FileState, ProjectState, ReleaseState
from pypi_assets.catalog.tables import checkpoints

_VERSION = 2
_PRESENT, _YANKED, _BASELINE, _SHOWN_ALONE = 1, 2, 4, 8
_QUARANTINED_RELEASE, _NAMED_ALONE = 4, 8


class CheckpointError(Exception):
    """A stored checkpoint is corrupt, or another version wrote it. Fold the project from scratch."""


@dataclass(slots=True)
class Checkpoint:
    """The state of a project after all events and pages up to `serial`.

    It includes all events above `known_since`. `first_page` and `newest_page` are the serials of the first and the
    newest page up to `serial`; `last_serial` is the serial of the last event or page. `topics` are the releases, and
    the project, that events about yanks and quarantines have named.

    Pages up to `open_serial` showed changes that no event explains. An event can still explain them if it happened by
    `open_until` (unix seconds; minus infinity if nothing is unexplained). `unsettled` are the files whose stored rows
    show more than the state at `serial`. `facts` belongs to the caller: a number for each of some files.

    `releases` has the text and the flags of each release. `files` has for each file the index of its release, its
    flags, and the serials since which it is live and yanked (-1 if it is not).
    """

    serial: int
    known_since: int
    first_page: int | None
    newest_page: int | None
    last_serial: int
    topics: frozenset[tuple[str, str]]
    is_quarantined: bool
    releases: list[tuple[str, int]]
    files: dict[str, tuple[int, int, int, int]]
    open_serial: int = -1
    open_until: float = -inf
    unsettled: tuple[str, ...] = ()
    facts: dict[str, int] = field(default_factory=dict)

    @property
    def visible(self) -> dict[str, bool]:
        """Return the live files, each with whether it is yanked."""
        return {name: yanked >= 0 for name, (_, _, live, yanked) in self.files.items() if live >= 0}

    def allows(self, page_serial: int) -> bool:
        """Check whether a page with this serial, at or below the checkpoint's, can leave the past unchanged.

        It does if it also agrees with the stored past at its serial.
        """
        return self.first_page is not None and page_serial > max(self.first_page, self.known_since)

    def encode(self) -> bytes:
        """Return the checkpoint in a few bytes for each file. `decode` is the reverse."""
        names = sorted(self.files)
        content = {
            "version": _VERSION,
            "serial": self.serial,
            "known_since": self.known_since,
            "pages": [self.first_page, self.newest_page, self.last_serial],
            "topics": sorted(self.topics),
            "open": [self.open_serial, None if self.open_until == -inf else self.open_until],
            "is_quarantined": self.is_quarantined,
            "releases": self.releases,
            "names": names,
            "files": list(zip(*(self.files[name] for name in names), strict=True)),
            "unsettled": self.unsettled,
            "facts": [self.facts.get(name) for name in names],
        }
        return zlib.compress(orjson.dumps(content), 1)

    @classmethod
    def decode(cls, encoded: bytes) -> "Checkpoint":
        """Return the checkpoint that `encode` returned. Raises CheckpointError."""
        try:
            content: dict[str, Any] = orjson.loads(zlib.decompress(encoded))
            if content["version"] != _VERSION:
                raise CheckpointError(f"the checkpoint has version {content['version']}, expected {_VERSION}")
            first_page, newest_page, last_serial = content["pages"]
            open_serial, open_until = content["open"]
            names, files = content["names"], content["files"]
            return cls(
                content["serial"],
                content["known_since"],
                first_page,
                newest_page,
                last_serial,
                frozenset((topic, text) for topic, text in content["topics"]),
                content["is_quarantined"],
                [(text, flags) for text, flags in content["releases"]],
                dict(zip(names, zip(*files, strict=True), strict=True)) if names else {},
                open_serial,
                -inf if open_until is None else open_until,
                tuple(content["unsettled"]),
                {name: fact for name, fact in zip(names, content["facts"], strict=True) if fact is not None},
            )
        except (zlib.error, orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"not a checkpoint: {type(error).__name__}: {error}") from error


def captured(state: ProjectState) -> dict[str, Any]:
    """Return the parts of a checkpoint that describe a state: `is_quarantined`, `releases` and `files`."""
    numbers = {id(release): number for number, release in enumerate(state.releases.values())}
    return {
        "is_quarantined": state.is_quarantined,
        "releases": [(release.text, _release_flags(release)) for release in state.releases.values()],
        "files": {
            name: (
                numbers[id(file.release)],
                _file_flags(file),
                -1 if file.live_since is None else file.live_since,
                -1 if file.yanked_since is None else file.yanked_since,
            )
            for name, file in state.files.items()
        },
    }


def state_of(checkpoint: Checkpoint, version_of: Callable[[str], str]) -> ProjectState:
    """Return the state that the checkpoint was made from, without traces.

    `version_of` returns the release of a new filename.
    """
    state = ProjectState(version_of)
    state.is_quarantined = checkpoint.is_quarantined
    releases = [
        state.add_release(
            ReleaseState(text, bool(flags & _YANKED), bool(flags & _QUARANTINED_RELEASE), bool(flags & _NAMED_ALONE))
        )
        for text, flags in checkpoint.releases
    ]
    for name, (number, flags, live, yanked) in checkpoint.files.items():
        release = releases[number]
        release.files.add(name)
        state.files[name] = FileState(
            release,
            bool(flags & _PRESENT),
            bool(flags & _YANKED),
            bool(flags & _BASELINE),
            bool(flags & _SHOWN_ALONE),
            None if live < 0 else live,
            None if yanked < 0 else yanked,
        )
        if live >= 0:
            state.visible[name] = yanked >= 0
    return state


def _release_flags(release: ReleaseState) -> int:
    return (
        _YANKED * release.is_yanked
        + _QUARANTINED_RELEASE * release.is_quarantined
        + _NAMED_ALONE * release.is_named_alone
    )


def _file_flags(file: FileState) -> int:
    return (
        _PRESENT * file.is_present
        + _YANKED * file.is_yanked
        + _BASELINE * file.is_baseline
        + _SHOWN_ALONE * file.is_shown_alone
    )


class StoredCheckpoint(NamedTuple):
    """A checkpoint, and the serial of the page whose facts it has; None if it lacks facts of some files."""

    checkpoint: Checkpoint
    page_serial: int | None


def load_checkpoints(connection: Connection, project_ids: Collection[int]) -> dict[int, StoredCheckpoint]:
    """Return the checkpoints of those projects that have one. Unreadable checkpoints are deleted."""
    found: dict[int, StoredCheckpoint] = {}
    damaged: list[int] = []
    for ids in at_a_time(sorted(project_ids)):
        for row in connection.execute(select(checkpoints).where(checkpoints.c.project_id.in_(ids))):
            try:
                checkpoint = Checkpoint.decode(row.content)
            except CheckpointError:
                damaged.append(row.project_id)
            else:
                found[row.project_id] = StoredCheckpoint(checkpoint, row.page_serial)
    discard_checkpoints(connection, damaged)
    return found


def store_checkpoints(connection: Connection, stored: Mapping[int, StoredCheckpoint]) -> None:
    """Store checkpoints by project id. They replace earlier checkpoints."""
    rows = [
        {
            "project_id": project_id,
            "serial": one.checkpoint.serial,
            "page_serial": one.page_serial,
            "content": one.checkpoint.encode(),
        }
        for project_id, one in sorted(stored.items())
    ]
    upsert(connection, checkpoints, rows, key=("project_id",), update=("serial", "page_serial", "content"))


def discard_checkpoints(connection: Connection, project_ids: Collection[int]) -> None:
    """Delete the checkpoints of these projects, whose past has changed. They are folded from scratch next time."""
    for ids in at_a_time(sorted(project_ids)):
        connection.execute(delete(checkpoints).where(checkpoints.c.project_id.in_(ids)))
