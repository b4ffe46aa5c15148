"""What a mirror remembers: the object `mirror.json` of its storage. It also marks the storage as a mirror's.

It names the source without credentials, when the source was last followed to its end, since when it fails and why,
and since when what lies in the storage is not named by published.json any more.
"""

import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import orjson

from pypi_assets.journal.record_reader import Journal, NoJournalError
from pypi_assets.mirror.sources import MirrorError, OtherHomeError
from pypi_assets.mirror.sync_plan import read_state
from pypi_assets.storage.published import PUBLISHED
from pypi_assets.storage.root_owner import MIRROR, read_json
from pypi_assets.storage.store import ObjectNotFoundError, Storage

FORMAT = 1


@dataclass(frozen=True, slots=True)
class MirrorState:
    """Times are in unix seconds. `checked_at` is when the source was last looked at; `synced_at` when all that it
    named was there. `superseded` has since when, by the path of what it begins with. `home` identifies the home that
    alone writes to the storage."""

    source: str
    checked_at: float | None = None
    synced_at: float | None = None
    failing_since: float | None = None
    error: str | None = None
    is_refused: bool = False
    superseded: Mapping[str, float] = field(default_factory=dict)
    home: str | None = None

    def encode(self) -> bytes:
        """As it is stored."""
        return orjson.dumps({"format": FORMAT, **asdict(self)}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


@dataclass(frozen=True, slots=True)
class MirrorStatus:
    """What a mirror holds and how it follows. `state` is `following`, `failing`, `refused` or `empty`."""

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
    """What a mirror remembers; None where the storage is no mirror's. Raises MirrorError where it is damaged."""
    try:
        fields = read_json(storage, MIRROR)
        if fields.pop("format") != FORMAT:
            raise ValueError("another format")
        return MirrorState(**fields)
    except ObjectNotFoundError:
        return None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise MirrorError(
            f"{storage.uri(MIRROR)} was read several times and is damaged ({error}): the next round writes it again"
            " (pypi-assets mirror run --from URL)"
        ) from error


def require_home(storage: Storage, home: str | None) -> None:
    """Raise OtherHomeError if the storage is that of a mirror with another home. `home` is what `identity_of` returns;
    None: it is not compared.
    """
    state = read_mirror(storage)
    if state is not None and None not in (home, state.home) and state.home != home:
        raise OtherHomeError(
            f"{storage.url} belongs to a mirror with another home, which copies from {state.source}: give this one a"
            " storage of its own. If the other home is lost, run the mirror once with --take-over"
        )


def identity_of(home: Path) -> str:
    """Return what distinguishes a home from others, which it keeps in `mirror.id`."""
    path = home / "mirror.id"
    home.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError), path.open("x") as file:
        file.write(uuid.uuid4().hex)
    return path.read_text().strip()


def begin_mirror(storage: Storage, state: MirrorState) -> None:
    """Make the storage a mirror's. Of several homes at once, exactly one succeeds, and others get an OtherHomeError."""
    storage.create(MIRROR, state.encode())
    require_home(storage, state.home)


def write_mirror(storage: Storage, state: MirrorState) -> None:
    """Replaces what the mirror remembers."""
    storage.put(MIRROR, state.encode())


def mirror_status(storage: Storage) -> MirrorStatus:
    """What the mirror in a storage holds. Raises MirrorError where the storage is no mirror's."""
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
    """The serial up to which a mirror holds the journal, so that its past can be replayed; 0: it holds none. None where
    the storage is no mirror's.
    """
    if not storage.exists(MIRROR):
        return None
    journal = Journal(storage)
    try:
        return min(head.through for head in journal.heads())
    except NoJournalError:
        return 0
