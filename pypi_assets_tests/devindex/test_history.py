"""The history: how operations change the state, which are rejected, and the effects of other processes and kills."""

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from benchmarks.devindex_replay import write_history
from pypi_assets.devindex.devindex_errors import HistoryError, OperationRefusedError
from pypi_assets.devindex.history import History
from pypi_assets_tests.builders import make_sdist, make_wheel
from pypi_assets_tests.devindex.shown import WHEEL, actions, shown
from pypi_assets_tests.naming import naming


def test_times_are_stored_as_given(history: History, tmp_path: Path) -> None:
    first = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=timezone(timedelta(hours=2)))
    history.add(make_wheel(tmp_path, "demo", "1.0"), at=first)
    history.yank("demo", "1.0", at=datetime(2020, 1, 1, tzinfo=UTC))
    state = history.state()
    assert {event.timestamp for event in state.changelog[:4]} == {int(first.timestamp())}
    assert state.changelog[4].timestamp == 1577836800
    assert [file.uploaded_at for file in state.files.values()] == ["2026-03-01T10:00:00.250000Z"]


def test_time_without_zone_is_an_error(history: History, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        history.add(make_wheel(tmp_path, "demo", "1.0"), at=datetime(2026, 1, 1))  # noqa: DTZ001 - the invalid value under test


def test_removed_file_stays_downloadable_and_its_name_in_use(demo: History, tmp_path: Path) -> None:
    demo.remove_file(WHEEL)
    assert shown(demo) == [("demo-1.0.tar.gz", False)]
    assert actions(demo, 5) == [("Demo", "1.0", f"remove file {WHEEL}")]
    removed = next(file for file in demo.state().files.values() if file.filename == WHEEL)
    assert demo.file_path(removed).read_bytes() == (tmp_path / WHEEL).read_bytes()
    with pytest.raises(OperationRefusedError, match=naming(WHEEL)):
        demo.add(make_wheel(tmp_path, "demo", "1.0", files={"other.py": ""}))


@pytest.mark.parametrize(
    ("operate", "values"),
    [
        (lambda h: h.remove_file("gone.whl"), ["gone.whl"]),
        (lambda h: h.remove_release("demo", "9"), ["Demo", 9, "1.0"]),
        (lambda h: h.remove_release("missing", "9"), ["missing"]),
        (lambda h: h.remove_project("missing"), ["missing"]),
        (lambda h: h.yank("demo", "1.0"), ["Demo", "1.0"]),
        (lambda h: h.unyank("demo", "2.0"), ["Demo", "2.0"]),
        (lambda h: h.quarantine_release("demo", "2.0"), ["Demo", "2.0", "quarantined"]),
        (lambda h: h.unquarantine_release("demo", "1.0"), ["Demo", "1.0", "quarantined"]),
        (lambda h: h.quarantine("held"), ["held", "quarantined"]),
        (lambda h: h.unquarantine("demo"), ["Demo", "quarantined"]),
        (lambda h: h.archive("held"), ["held", "quarantined"]),
        (lambda h: h.archive("old"), ["old", "archived"]),
        (lambda h: h.unarchive("demo"), ["Demo", "archived"]),
        (lambda h: h.add(h.folder.parent / "old-2.0.tar.gz"), ["old", "archived"]),
        (lambda h: h.add(h.folder.parent / "held-2.0.tar.gz"), ["held", "quarantined"]),
        (lambda h: h.add(h.folder.parent / "demo-2.0.tar.gz"), ["Demo", "2.0", "quarantined"]),
        (lambda h: h.add(h.folder.parent / WHEEL), [WHEEL]),
    ],
)
def test_impossible_operation_is_rejected_and_changes_nothing(
    demo: History, tmp_path: Path, operate: Callable[[History], int], values: list[object]
) -> None:
    demo.yank("demo", "1.0")
    demo.add(make_wheel(tmp_path, "Demo", "2.0"))
    demo.quarantine_release("demo", "2.0")
    for project in ("held", "old"):
        demo.add(make_wheel(tmp_path, project, "1.0"))
    demo.quarantine("held")
    demo.archive("old")
    for project in ("held", "old", "demo"):
        make_sdist(tmp_path, project, "2.0")
    before = files_below(demo.folder)
    rows = actions(demo)
    with pytest.raises(OperationRefusedError, match=naming(*values)):
        operate(demo)
    assert files_below(demo.folder) == before
    assert actions(demo) == actions(History(demo.folder)) == rows


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_other_history_reads_only_new_operations(demo: History, tmp_path: Path) -> None:
    reader = History(demo.folder)
    state = reader.state()
    assert reader.state() is state
    demo.yank("demo", "1.0")
    assert reader.state() is state, "the history was read from scratch"
    assert actions(reader) == actions(demo)


def test_replaced_history_is_read_from_scratch(demo: History, tmp_path: Path) -> None:
    reader = History(demo.folder)
    reader.state()
    other = History(tmp_path / "other")
    other.add(make_wheel(tmp_path, "another", "1.0"))
    (other.folder / "history.jsonl").replace(demo.folder / "history.jsonl")
    assert list(reader.state().projects) == ["another"]
    (demo.folder / "history.jsonl").unlink()
    assert reader.state().last_serial is None


def test_state_at_an_earlier_serial(demo: History, tmp_path: Path) -> None:
    recorded = {demo.state().last_serial or 0: shown(demo)}
    for change in (demo.yank, demo.quarantine_release, demo.unquarantine_release, demo.unyank):
        serial = change("demo", "1.0")
        recorded[serial] = shown(demo)
    demo.remove_project("demo")
    reader = History(demo.folder)
    for _ in range(2):
        for serial, files in recorded.items():
            past = reader.state_at(serial)
            assert (past.last_serial, shown(past)) == (serial, files)
    assert [reader.state_at(serial).last_serial for serial in (-1, 0, 3, 4, 10, 99)] == [None, None, None, 4, 10, 10]
    assert reader.state_at(7) is reader.state_at(7)
    other = tmp_path / "other"
    History(other).add(make_wheel(tmp_path, "other", "1.0"))
    demo.folder.joinpath("history.jsonl").unlink()
    other.joinpath("history.jsonl").rename(demo.folder / "history.jsonl")
    assert reader.state_at(3).projects == {}


def test_operation_without_a_serial_belongs_to_the_previous_serial(demo: History) -> None:
    demo.archive("demo")
    assert demo.state_at(5) is demo.state()
    demo.unarchive("demo")
    demo.yank("demo", "1.0")
    demo.archive("demo")
    assert [demo.state_at(serial).projects["demo"].status for serial in (5, 6)] == ["active", "archived"]


def test_torn_last_line_is_ignored_and_removed_by_the_next_writer(demo: History) -> None:
    path = demo.folder / "history.jsonl"
    whole = path.read_bytes()
    demo.yank("demo", "1.0")
    line = path.read_bytes()[len(whole) :]
    for kept in range(1, len(line)):
        path.write_bytes(whole + line[:kept])
        assert actions(History(demo.folder)) == actions(demo)[:5]
        assert path.read_bytes() == whole + line[:kept], "a reader has changed the file"
    assert History(demo.folder).quarantine("demo") == 6
    assert actions(History(demo.folder))[5:] == [("Demo", None, "project quarantined")]
    assert path.read_bytes().startswith(whole)


def test_corrupt_line_is_named(demo: History) -> None:
    path = demo.folder / "history.jsonl"
    path.write_bytes(path.read_bytes() + b'{"kind": "no such thing"}\n')
    with pytest.raises(HistoryError, match=naming("history.jsonl", 3)):
        History(demo.folder).state()


def test_failed_write_leaves_no_trace(demo: History, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def half(descriptor: int, data: bytes) -> int:
        if len(data) < 20:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[: len(data) // 2])

    with monkeypatch.context() as patch:
        patch.setattr("pypi_assets.devindex.history.os.write", half)
        with pytest.raises(OSError, match="No space left"):
            demo.yank("demo", "1.0")
    assert len(actions(demo)) == len(actions(History(demo.folder))) == 5
    assert demo.yank("demo", "1.0") == 6
    assert actions(History(demo.folder)) == actions(demo)


def test_writers_in_threads_and_processes_take_turns(tmp_path: Path) -> None:
    code = (
        "import sys; from pypi_assets.devindex.history import History\n"
        "for path in sys.argv[2:]: History(sys.argv[1]).add(path)"
    )
    paths = [make_wheel(tmp_path, f"p{number}", "1.0") for number in range(40)]
    processes = [
        subprocess.Popen([sys.executable, "-c", code, tmp_path / "index", *some]) for some in (paths[:10], paths[10:20])
    ]
    shared = History(tmp_path / "index")
    with ThreadPoolExecutor(4) as pool:
        serials = list(pool.map(lambda path: History(tmp_path / "index").add(path), paths[20:30]))
        serials += pool.map(shared.add, paths[30:])
    assert [process.wait(120) for process in processes] == [0, 0]
    state = History(tmp_path / "index").state()
    assert [event.serial for event in state.changelog] == list(range(1, 161))
    assert sorted(state.projects) == sorted(f"p{number}" for number in range(40))
    assert len(set(serials)) == 20


def calls_of(work: Callable[[], object]) -> int:
    """Return the number of function calls, of Python and C functions, during `work`."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.nightly
def test_work_of_a_replay_grows_only_with_the_files(tmp_path: Path) -> None:
    """`benchmarks/devindex_replay.py` measures the time."""
    calls = {}
    for files in (1_500, 3_000, 6_000):
        write_history(tmp_path / str(files), files)
        history = History(tmp_path / str(files))
        calls[files] = calls_of(history.state)
        assert history.state().last_serial == 1_500 * 2 + files * 2
        assert calls_of(history.state) < 20  # nothing new, nothing to do
    assert calls[6_000] - calls[3_000] <= 2.1 * (calls[3_000] - calls[1_500])
    assert calls[6_000] < 100 * 6_000
