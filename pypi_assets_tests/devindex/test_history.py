"""The history: what operations do to the state, what is refused, and what other processes and kills do to the file."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import orjson
import pytest

from pypi_assets.devindex.errors import HistoryError, OperationRefusedError
from pypi_assets.devindex.history import History
from pypi_assets.devindex.index_state import IndexState, Operation, OperationKind
from pypi_assets.devindex.served_pages import simple_project_json
from pypi_assets.devindex.uploads import StoredFile
from pypi_assets_tests.builders import make_sdist, make_wheel

WHEEL = "demo-1.0-py3-none-any.whl"


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "index")


@pytest.fixture
def demo(history: History, tmp_path: Path) -> History:
    """A history with Demo 1.0 as a wheel and an sdist."""
    history.add(make_wheel(tmp_path, "Demo", "1.0"))
    history.add(make_sdist(tmp_path, "Demo", "1.0"))
    return history


def actions(history: History, after: int = 0) -> list[tuple[str, str | None, str]]:
    return [(event.name, event.version, event.action) for event in history.state().changelog_since(after, 50_000)]


def shown(history: History | IndexState, project: str = "demo") -> list[tuple[str, bool | str]]:
    state = history.state() if isinstance(history, History) else history
    found = state.project(project)
    assert found is not None
    files = orjson.loads(simple_project_json(found, "https://files.example.org"))["files"]
    return [(file["filename"], file["yanked"]) for file in files]


def test_an_empty_index(history: History) -> None:
    state = history.state()
    assert (state.last_serial, state.changelog, state.projects) == (None, [], {})


def test_an_upload_registers_project_and_release_once(demo: History, tmp_path: Path) -> None:
    serial = demo.add(make_wheel(tmp_path, "demo", "1.1"))
    assert serial == demo.state().last_serial == 7
    assert actions(demo) == [
        ("Demo", None, "create"),
        ("Demo", None, "add Owner devindex"),
        ("Demo", "1.0", "new release"),
        ("Demo", "1.0", f"add py3 file {WHEEL}"),
        ("Demo", "1.0", "add source file demo-1.0.tar.gz"),
        ("Demo", "1.1", "new release"),
        ("Demo", "1.1", "add py3 file demo-1.1-py3-none-any.whl"),
    ]


def test_versions_that_are_equal_are_one_release(demo: History, tmp_path: Path) -> None:
    demo.add(make_wheel(tmp_path, "demo", "1.0.0"))
    assert actions(demo, 5) == [("Demo", "1.0", "add py3 file demo-1.0.0-py3-none-any.whl")]


def test_times_are_kept_as_given_even_backwards(history: History, tmp_path: Path) -> None:
    first = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=timezone(timedelta(hours=2)))
    history.add(make_wheel(tmp_path, "demo", "1.0"), at=first)
    history.yank("demo", "1.0", at=datetime(2020, 1, 1, tzinfo=UTC))
    state = history.state()
    assert {event.timestamp for event in state.changelog[:4]} == {int(first.timestamp())}
    assert state.changelog[4].timestamp == 1577836800
    assert [file.uploaded_at for file in state.files.values()] == ["2026-03-01T10:00:00.250000Z"]


def test_a_time_without_zone_is_an_error(history: History, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        history.add(make_wheel(tmp_path, "demo", "1.0"), at=datetime(2026, 1, 1))  # noqa: DTZ001 - the wrong value


def test_a_removed_file_stays_downloadable_and_its_name_used(demo: History, tmp_path: Path) -> None:
    demo.remove_file(WHEEL)
    assert shown(demo) == [("demo-1.0.tar.gz", False)]
    assert actions(demo, 5) == [("Demo", "1.0", f"remove file {WHEEL}")]
    removed = next(file for file in demo.state().files.values() if file.filename == WHEEL)
    assert demo.file_path(removed).read_bytes() == (tmp_path / WHEEL).read_bytes()
    with pytest.raises(OperationRefusedError, match=f"{WHEEL} has been on the index before"):
        demo.add(make_wheel(tmp_path, "demo", "1.0", files={"other.py": ""}))


def test_a_release_without_files_stays_a_release(demo: History, tmp_path: Path) -> None:
    demo.remove_file(WHEEL)
    demo.remove_file("demo-1.0.tar.gz")
    demo.add(make_sdist(tmp_path, "demo", "1.0", format="zip"))
    assert actions(demo, 7) == [("Demo", "1.0", "add source file demo-1.0.zip")]


def test_removing_a_release_is_one_event(demo: History, tmp_path: Path) -> None:
    demo.remove_release("DEMO", "1")
    assert actions(demo, 5) == [("Demo", "1.0", "remove release")]
    assert shown(demo) == []
    with pytest.raises(OperationRefusedError, match=f"no file {WHEEL}"):
        demo.remove_file(WHEEL)
    demo.add(make_sdist(tmp_path, "demo", "1.0", format="zip"))
    assert actions(demo, 6)[0] == ("Demo", "1.0", "new release")


def test_removing_a_project_is_one_event_and_frees_its_name(demo: History, tmp_path: Path) -> None:
    demo.remove_project("demo")
    assert actions(demo, 5) == [("Demo", None, "remove project")]
    assert demo.state().project("demo") is None
    with pytest.raises(OperationRefusedError, match="before"):
        demo.add(tmp_path / WHEEL)
    demo.add(make_wheel(tmp_path, "dEMO", "2.0"))
    assert [action for _, _, action in actions(demo, 6)][:2] == ["create", "add Owner devindex"]
    assert shown(demo) == [("demo-2.0-py3-none-any.whl", False)]


def test_a_yank_is_on_the_release(demo: History, tmp_path: Path) -> None:
    demo.yank("demo", "1.0", "it is broken")
    demo.add(make_sdist(tmp_path, "demo", "1.0", format="zip"))
    assert {yanked for _, yanked in shown(demo)} == {"it is broken"}
    assert len(shown(demo)) == 3
    demo.unyank("demo", "1.0")
    assert {yanked for _, yanked in shown(demo)} == {False}
    demo.yank("demo", "1.0")
    assert {yanked for _, yanked in shown(demo)} == {True}
    assert [action for _, _, action in actions(demo, 7)] == ["unyank release", "yank release"]


def test_quarantines_hide_files_until_cleared(demo: History, tmp_path: Path) -> None:
    demo.add(make_wheel(tmp_path, "demo", "2.0"))
    demo.quarantine_release("demo", "1.0")
    assert shown(demo) == [("demo-2.0-py3-none-any.whl", False)]
    demo.quarantine("demo")
    assert shown(demo) == []
    demo.unquarantine_release("demo", "1.0")
    assert shown(demo) == []
    demo.unquarantine("demo")
    assert len(shown(demo)) == 3
    assert [action for _, _, action in actions(demo, 7)] == [
        "release quarantined",
        "project quarantined",
        "release quarantine cleared",
        "project quarantine cleared",
    ]


def test_archiving_moves_no_serial(demo: History) -> None:
    assert demo.archive("demo") == 5
    project = demo.state().project("demo")
    assert project is not None
    assert (project.status, project.last_serial) == ("archived", 5)
    assert demo.unarchive("demo") == 5
    assert project.status == "active"


@pytest.mark.parametrize(
    ("operate", "text"),
    [
        (lambda h: h.remove_file("gone.whl"), "no file gone.whl"),
        (lambda h: h.remove_release("demo", "9"), "project Demo has no release 9; it has 1.0"),
        (lambda h: h.remove_release("missing", "9"), "no project missing"),
        (lambda h: h.remove_project("missing"), "no project missing"),
        (lambda h: h.yank("demo", "1.0"), "release Demo 1.0 is yanked already"),
        (lambda h: h.unyank("demo", "2.0"), "release Demo 2.0 is not yanked"),
        (lambda h: h.quarantine_release("demo", "2.0"), "release Demo 2.0 is quarantined already"),
        (lambda h: h.unquarantine_release("demo", "1.0"), "release Demo 1.0 is not quarantined"),
        (lambda h: h.quarantine("held"), "project held is quarantined already"),
        (lambda h: h.unquarantine("demo"), "project Demo is not quarantined"),
        (lambda h: h.archive("held"), "project held is quarantined; only an active one"),
        (lambda h: h.archive("old"), "project old is archived; only an active one"),
        (lambda h: h.unarchive("demo"), "project Demo is not archived"),
        (lambda h: h.add(h.folder.parent / "old-2.0.tar.gz"), "project old is archived and takes no files"),
        (lambda h: h.add(h.folder.parent / "held-2.0.tar.gz"), "project held is quarantined and takes no files"),
        (lambda h: h.add(h.folder.parent / "demo-2.0.tar.gz"), "release Demo 2.0 is quarantined and takes no files"),
        (lambda h: h.add(h.folder.parent / WHEEL), f"{WHEEL} has been on the index before"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(
    demo: History, tmp_path: Path, operate: Callable[[History], int], text: str
) -> None:
    demo.yank("demo", "1.0")
    demo.add(make_wheel(tmp_path, "demo", "2.0"))
    demo.quarantine_release("demo", "2.0")
    for project in ("held", "old"):
        demo.add(make_wheel(tmp_path, project, "1.0"))
    demo.quarantine("held")
    demo.archive("old")
    for project in ("held", "old", "demo"):
        make_sdist(tmp_path, project, "2.0")
    before = files_below(demo.folder)
    rows = actions(demo)
    with pytest.raises(OperationRefusedError, match=text):
        operate(demo)
    assert files_below(demo.folder) == before
    assert actions(demo) == actions(History(demo.folder)) == rows


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_another_history_sees_only_what_is_new(demo: History, tmp_path: Path) -> None:
    reader = History(demo.folder)
    state = reader.state()
    assert reader.state() is state
    demo.yank("demo", "1.0")
    assert reader.state() is state, "it went on from where it was"
    assert actions(reader) == actions(demo)


def test_a_history_that_was_replaced_is_read_from_scratch(demo: History, tmp_path: Path) -> None:
    reader = History(demo.folder)
    reader.state()
    other = History(tmp_path / "other")
    other.add(make_wheel(tmp_path, "another", "1.0"))
    (other.folder / "history.jsonl").replace(demo.folder / "history.jsonl")
    assert list(reader.state().projects) == ["another"]
    (demo.folder / "history.jsonl").unlink()
    assert reader.state().last_serial is None


def test_the_state_as_of_an_earlier_serial(demo: History, tmp_path: Path) -> None:
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


def test_an_operation_without_a_serial_belongs_to_the_serial_before_it(demo: History) -> None:
    demo.archive("demo")
    assert demo.state_at(5) is demo.state()
    demo.unarchive("demo")
    demo.yank("demo", "1.0")
    demo.archive("demo")
    assert [demo.state_at(serial).projects["demo"].status for serial in (5, 6)] == ["active", "archived"]


def test_which_serial_there_was_at_a_time(history: History, tmp_path: Path) -> None:
    start = datetime(2026, 1, 2, tzinfo=UTC)
    history.add(make_wheel(tmp_path, "demo", "1.0"), at=start)
    history.yank("demo", "1.0", at=start + timedelta(seconds=10))
    moments = (-1, 0, 9.9, 10, 1000)
    assert [history.state().serial_at(start.timestamp() + moment) for moment in moments] == [0, 4, 4, 5, 5]


def test_a_torn_last_line_is_ignored_and_cut_off_by_the_next_writer(demo: History) -> None:
    path = demo.folder / "history.jsonl"
    whole = path.read_bytes()
    demo.yank("demo", "1.0")
    line = path.read_bytes()[len(whole) :]
    for kept in range(1, len(line)):
        path.write_bytes(whole + line[:kept])
        assert actions(History(demo.folder)) == actions(demo)[:5]
        assert path.read_bytes() == whole + line[:kept], "a reader changes nothing"
    assert History(demo.folder).quarantine("demo") == 6
    assert actions(History(demo.folder))[5:] == [("Demo", None, "project quarantined")]
    assert path.read_bytes().startswith(whole)


def test_a_broken_line_is_named(demo: History) -> None:
    path = demo.folder / "history.jsonl"
    path.write_bytes(path.read_bytes() + b'{"kind": "no such thing"}\n')
    with pytest.raises(HistoryError, match=r"history\.jsonl, line 3: cannot be replayed"):
        History(demo.folder).state()


def test_a_failed_write_leaves_no_trace(demo: History, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_5000_files_are_replayed_well_within_a_second(history: History) -> None:
    history.folder.mkdir()
    with (history.folder / "history.jsonl").open("wb") as stream:
        for number in range(5000):
            at, digest = "2026-11-20T09:43:17.484199Z", f"{number:064x}"
            name = f"p{number % 1500}-{number}-py3-none-any.whl"
            file = StoredFile(name, "bdist_wheel", "py3", 1000, digest, digest[:32], digest, None, digest, at)
            operation = Operation(OperationKind.ADD, at, f"p{number % 1500}", str(number), owner="x", file=file)
            stream.write(orjson.dumps(operation.as_record()) + b"\n")
    start = time.process_time()
    assert history.state().last_serial == 1500 * 2 + 5000 * 2
    assert time.process_time() - start < 0.8
