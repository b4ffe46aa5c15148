"""Daily solvability files: writing, reading, caching and deletion."""

import gzip
from datetime import UTC, date, datetime
from pathlib import Path

import msgspec
import pytest

from pypi_assets.resolve import solvability
from pypi_assets.resolve.solvability import (
    FORMAT,
    SOLVABILITY,
    Event,
    Failure,
    Limits,
    Moment,
    NewlySolvable,
    NewlyUnsolvable,
    NoDayError,
    Outcome,
    Place,
    Project,
    Solvability,
    SolvabilityError,
    StoredDays,
    clean_days,
    day_of,
    read_day,
    read_newest,
    solvability_path,
    stored_days,
    write_day,
)
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.naming import mentions, naming

DAY = date(2026, 3, 2)
MADE = Solvability(
    format=FORMAT,
    moment=Moment(DAY, 1350, 1401),
    before=Moment(date(2026, 3, 1), 1200, 1200),
    limits=Limits(100, 1.5),
    environments=(Place("here", "3.13", "linux"), Place("there", "3.11", "macos")),
    projects=(
        Project("demo", 12, {"here": Outcome("2.1", {"demo": "2.1", "six": "1.16"}), "there": Outcome("2.1")}),
        Project(
            "broken",
            3,
            {
                "here": Outcome(failure=Failure.UNSOLVABLE, proof=("Because …", "So there is no solution.")),
                "there": Outcome(failure=Failure.LIMIT, proof=("it took too long",)),
            },
        ),
        Project(
            "odd",
            1,
            {"here": Outcome(failure=Failure.UNKNOWN_REQUIREMENTS, proof=("not known",)), "there": Outcome("1")},
        ),
    ),
    newly_unsolvable=(
        NewlyUnsolvable(
            "broken",
            "here",
            "1.0",
            (Event(1300, datetime(2026, 3, 2, 1, tzinfo=UTC), "Lib", "yank release", "yank", ("a.whl",), 7),),
        ),
        NewlyUnsolvable("odd", "here", "1.0", None),
    ),
    newly_solvable=(NewlySolvable("demo", "here", "2.1"),),
)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return open_storage(tmp_path.as_uri())


def test_day_round_trip_is_deterministic(storage: Storage) -> None:
    size = write_day(storage, MADE)
    content = storage.get(solvability_path(DAY))
    assert (solvability_path(DAY), len(content)) == ("solvability/2026-03-02.json.gz", size)
    assert read_day(storage, DAY) == MADE
    write_day(storage, MADE)
    assert storage.get(solvability_path(DAY)) == content
    assert MADE.counts == {"solvable": 3, "unsolvable": 1, "unknown requirements": 1, "limit": 1}
    assert MADE.without_search == 1


def test_exceeded_limit_is_neither_solvable_nor_unsolvable() -> None:
    shown = {kind: (Outcome(failure=kind).is_solvable, Outcome(failure=kind).has_no_solution) for kind in Failure}
    assert shown == {
        Failure.UNSOLVABLE: (False, True),
        Failure.UNKNOWN_REQUIREMENTS: (False, True),
        Failure.LIMIT: (False, False),
    }
    assert Outcome("1").is_solvable
    assert not Outcome("1").has_no_solution


def put(storage: Storage, content: bytes) -> str:
    storage.put(solvability_path(DAY), content)
    with pytest.raises(SolvabilityError) as caught:
        read_day(storage, DAY)
    return str(caught.value)


def test_corrupt_file_is_rejected_and_named(storage: Storage) -> None:
    encoded = msgspec.json.encode(MADE)
    whole = gzip.compress(encoded, mtime=0)
    wrong = {**msgspec.json.decode(encoded), "projects": [{"name": 3}]}
    missing = {**msgspec.json.decode(encoded)}
    del missing["moment"]
    broken = [b"", b"text", whole[:-9], whole[:30], whole[:20] + b"\0\0\0\0" + whole[24:]]
    broken += [
        gzip.compress(content)
        for content in (b"{", b"[]", b"{}", encoded[:-5], *map(msgspec.json.encode, (wrong, missing)))
    ]
    for content in broken:
        text = put(storage, content)
        assert mentions(text, "solvability/2026-03-02.json.gz")


def test_unknown_format_and_other_day_are_rejected(storage: Storage) -> None:
    newer = gzip.compress(b'{"format":2,"moment":"otherwise"}')
    assert mentions(put(storage, newer), "2026-03-02.json.gz", "format 2", "format 1")
    other = msgspec.structs.replace(MADE, moment=Moment(date(2026, 3, 3), 1, 1))
    assert "2026-03-03" in put(storage, gzip.compress(msgspec.json.encode(other)))
    fewer = msgspec.structs.replace(MADE, environments=MADE.environments[:1])
    assert "demo" in put(storage, gzip.compress(msgspec.json.encode(fewer)))


def test_missing_day_is_named_with_the_available_days(storage: Storage) -> None:
    with pytest.raises(SolvabilityError):
        read_day(storage, DAY)
    with pytest.raises(SolvabilityError):
        read_newest(storage)
    write_day(storage, MADE)
    assert read_newest(storage) == MADE
    other = date(2026, 4, 1)
    with pytest.raises(SolvabilityError, match=naming(other, "2026-03-02")):
        read_day(storage, other)
    storage.put(solvability_path(date(2025, 1, 1)), b"")
    with pytest.raises(SolvabilityError, match=naming(2, "2025-01-01", "2026-03-02")):
        read_day(storage, other)
    storage.put("solvability/2026-13-01.json.gz", b"")
    assert stored_days(storage) == [date(2025, 1, 1), DAY]


@pytest.mark.parametrize(
    "path", ["solvability/2026-03-02.json", "solvability/x/2026-03-02.json.gz", "solvability/2026-02-30.json.gz", "x"]
)
def test_other_files_are_ignored(path: str) -> None:
    assert day_of(path) is None


def test_day_is_cached_until_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage(tmp_path.as_uri())
    days, reads = StoredDays(lambda: storage), []
    read_day = solvability.read_day
    monkeypatch.setattr(solvability, "read_day", lambda *given: reads.append(given) or read_day(*given))
    assert days.summaries(5) == []
    with pytest.raises(NoDayError):
        days.read(None)
    write_day(storage, MADE)
    for _ in range(3):
        [summary] = days.summaries(5)
    assert (summary.day, summary.serial, summary.outcomes["solvable"], summary.newly_unsolvable) == (DAY, 1350, 3, 2)
    assert len(reads) == 1
    write_day(storage, msgspec.structs.replace(MADE, newly_unsolvable=()))
    [summary] = days.summaries(5)
    assert (summary.newly_unsolvable, len(reads)) == (0, 2)
    assert days.read(None) == days.read(DAY)


def test_only_old_days_are_deleted(tmp_path: Path) -> None:
    storage = open_storage(tmp_path.as_uri())
    days = [date(2026, 3, day) for day in (2, 1)]
    others = [f"{SOLVABILITY}/notes.txt", f"{SOLVABILITY}/2026-02-30.json.gz", "elsewhere/2026-03-01.json.gz"]
    for path in (*map(solvability_path, days), *others):
        storage.put(path, b"something")
    written = storage.head(solvability_path(days[0])).last_modified.timestamp()
    assert clean_days(storage, written - 60) == []
    paths = [deleted.path for deleted in clean_days(storage, written + 60, dry_run=True)]
    assert paths == [solvability_path(day) for day in reversed(days)]
    assert stored_days(storage) == sorted(days)
    assert [deleted.path for deleted in clean_days(storage, written + 60)] == paths
    assert stored_days(storage) == []
    assert all(storage.exists(path) for path in others)
