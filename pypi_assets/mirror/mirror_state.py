"""The state of a mirror: the object `mirror.json` of its storage, which also marks the storage as a mirror's.

It names the source without credentials, when the source was last followed completely, since when it fails and why, and
since when stored files are no longer named by published.json.
"""

import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import orjson

from pypi_assets.journal.journal_errors import NoJournalError
from pypi_assets.journal.record_reader import Journal
from pypi_assets.mirror.sources import MirrorError, OtherHomeError
from pypi_assets.mirror.sync_plan import read_state
from pypi_assets.storage.published import PUBLISHED
from pypi_assets.storage.root_owner import MIRROR, read_json
from pypi_assets.storage.store import ObjectNotFoundError, Storage

FORMAT = 1


@dataclass(frozen=True, slots=True)
class MirrorState:
    """The stored state. Times are in unix seconds.

    `checked_at` is the start of the last round, and `synced_at` the start of the last round that copied everything.
    `superseded` maps the path of a dump, version, generation or segment to the time since which it is no longer named.
    `home` identifies the only home that may write to the storage.
    """

    source: str
    checked_at: float | None = None
    synced_at: float | None = None
    failing_since: float | None = None
    error: str | None = None
    is_refused: bool = False
    superseded: Mapping[str, float] = field(default_factory=dict)
    home: str | None = None

    def encode(self) -> bytes:
        """Return the state in its stored form."""
        return orjson.dumps({"format": FORMAT, **asdict(self)}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """The local files of a mirror, and how it follows. `state` is `following`, `failing`, `refused` or `empty`."""

    state: str
    source: str | None
    index_url: str | None
    checked_at: float | None
    synced_at: float | None
    failing_since: float | None
    error: str | None
    dumps_serial: int | None
    leveldbs: Mapping[str, int]
    journal: Mapping[str, int]


def read_mirror(storage: Storage) -> MirrorState | None:
    """Return the mirror's state, or None if the storage is not a mirror's. Raises MirrorError if it is corrupt."""
    try:
        fields = read_json(storage, MIRROR)
        if fields.pop("format") != FORMAT:
            raise ValueError("another format")
        return MirrorState(**fields)
    except ObjectNotFoundError:
        return None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise MirrorError(
            f"{storage.uri(MIRROR)} was read several times and is corrupt ({error}): the next round writes it again"
            " (pypi-assets mirror run --from URL)"
        ) from error


def require_home(storage: Storage, home: str | None) -> None:
    """Raise OtherHomeError if the storage belongs to a mirror with another home.

    `home` is a result of `identity_of`. If it is None, nothing is compared.
    """
    state = read_mirror(storage)
    if state is not None and None not in (home, state.home) and state.home != home:
        raise OtherHomeError(
            f"{storage.url} belongs to a mirror with another home, which copies from {state.source}: use a separate"
            " storage for this mirror. If the other home is lost, run the mirror once with --take-over"
        )


def identity_of(home: Path) -> str:
    """Return the unique id of a home, which is stored in `mirror.id`."""
    path = home / "mirror.id"
    home.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError), path.open("x") as file:
        file.write(uuid.uuid4().hex)
    return path.read_text().strip()


def begin_mirror(storage: Storage, state: MirrorState) -> None:
    """Make the storage a mirror's.

    If several homes try at the same time, one succeeds; the others raise OtherHomeError.
    """
    storage.create(MIRROR, state.encode())
    require_home(storage, state.home)


def write_mirror(storage: Storage, state: MirrorState) -> None:
    """Replace the mirror's state."""
    storage.put(MIRROR, state.encode())


def mirror_status(storage: Storage) -> MirrorStatus:
    """Return the status of the mirror in a storage. Raises MirrorError if the storage is not a mirror's."""
    state = read_mirror(storage)
    if state is None:
        raise MirrorError(f"{storage.url} is not the storage of a mirror: run `pypi-assets mirror run --from URL`")
    try:
        held = read_state(storage.get(PUBLISHED), storage.uri(PUBLISHED))
    except ObjectNotFoundError:
        held = None
    following = "following" if held is not None else "empty"
    failing = "refused" if state.is_refused else "failing"
    return MirrorStatus(
        state=following if state.error is None else failing,
        source=state.source,
        index_url=held.index_url if held else None,
        checked_at=state.checked_at,
        synced_at=state.synced_at,
        failing_since=state.failing_since,
        error=state.error,
        dumps_serial=held.dumps_serial if held else None,
        leveldbs={
            dataset: int(entries[-1].path.rpartition("/")[2])
            for dataset, entries in (held.leveldbs.items() if held else ())
            if entries
        },
        journal={stream: head.through for stream, head in (held.heads.items() if held else ())},
    )


def journal_end(storage: Storage) -> int | None:
    """Return the serial up to which a mirror has the journal, so that its history can be replayed.

    Returns 0 if it has no journal, and None if the storage is not a mirror's.
    """
    if not storage.exists(MIRROR):
        return None
    journal = Journal(storage)
    try:
        return min(head.through for head in journal.heads())
    except NoJournalError:
        return 0
