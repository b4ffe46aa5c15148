"""A project's history: complete, without repetition, and with the serials of the intervals."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import insert

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.derived.file_history import BASELINE, UNEXPLAINED, fold
from pypi_assets.catalog.derived.file_updates import CORRECTED
from pypi_assets.catalog.derived.project_state import Interval
from pypi_assets.catalog.derived.seen_pages import Sighting
from pypi_assets.catalog.reads.read_outcomes import READ_LATE
from pypi_assets.catalog.reports.past_visits import PastVisit
from pypi_assets.catalog.reports.project_history import (
    VISIT,
    FileLife,
    HistoryItem,
    LoggedChange,
    build_history,
    recent_events,
)
from pypi_assets.catalog.tables import catalog_state, events, followed_intervals, projects
from pypi_assets.index.actions import Action, file_change
from pypi_assets.index.models import ChangelogEvent
from pypi_assets_tests.naming import mentions
from pypi_assets_tests.simulated_index import SimulatedIndex, operation_names, version_of

WHEEL, SDIST = "demo-1.0-py3-none-any.whl", "demo-1.0.tar.gz"
WITHOUT_EVENT = (BASELINE, UNEXPLAINED, CORRECTED, READ_LATE)


def event(serial: int, action: str, version: str | None = "1.0") -> ChangelogEvent:
    return ChangelogEvent("Demo", version, 1_000 + serial, action, serial)


def visit(number: int, seen_through: int | None, *, attempt: int = 1, outcome: str = "full") -> PastVisit:
    return PastVisit(
        visit=number,
        kind="range",
        scope="range:0-9",
        attempt=attempt,
        started_at=float(number),
        ended_at=number + 0.5,
        outcome=outcome,
        page_serial=seen_through,
        seen_through=seen_through,
        snapshot=None if seen_through is None else "0" * 64,
        files=None if seen_through is None else 2,
        text="HTTP 503" if seen_through is None else None,
    )


def life(filename: str, *live: tuple[int, int | None], yanked: tuple[Interval, ...] = ()) -> FileLife:
    return FileLife(filename, "data", None, tuple(Interval(*one) for one in live), yanked)


@given(operations=st.lists(operation_names, max_size=25), data=st.data())
def test_each_event_visit_and_interval_end_is_in_one_entry(operations, data):
    """Any events may be missing, and any pages and logged changes may exist."""
    index = SimulatedIndex()
    for operation in operations:
        index.do(*operation)
    last = max(index.shown)
    events = [one for one in index.events if data.draw(st.booleans(), label=f"event {one.serial} is known")]
    since = data.draw(st.integers(0, last), label="known since")
    pages = [index.page(serial) for serial in data.draw(st.sets(st.integers(0, last), max_size=4), label="pages")]
    folded = fold(events, pages, known_since=since, events_through=last, version_of=version_of)
    assert folded is not None
    histories = folded.histories
    logged = {
        LoggedChange(change.serial, filename, change.cause)
        for filename, history in histories.items()
        for change in history.changes
    }
    filenames = st.sampled_from([*histories, WHEEL])
    logged |= data.draw(
        st.sets(st.builds(LoggedChange, st.integers(0, last), filenames, st.sampled_from(WITHOUT_EVENT)), max_size=4)
    )
    files = [FileLife(name, "data", None, history.live, history.yanked) for name, history in histories.items()]
    through = data.draw(st.lists(st.none() | st.integers(0, last), max_size=5).map(rising), label="visits")
    visits = [visit(number, serial) for number, serial in enumerate(through, 1)]
    story = build_history(events, data.draw(st.permutations(sorted(logged, key=repr))), files, visits)

    assert [entry.serial for entry in story] == sorted(entry.serial for entry in story)
    described = [(entry.serial, entry.at, entry.kind) for entry in story if entry.kind in set(Action)]
    assert described == [(one.serial, one.timestamp, file_change(one).action) for one in events]
    assert [entry.visit for entry in story if entry.kind == VISIT] == [one.visit for one in visits]
    assert begun(story, "live") == Counter((i.start, file.filename) for file in files for i in file.live)
    assert begun(story, "away") == Counter((i.end, file.filename) for file in files for i in file.live if i.end)
    for file in files:
        edges = {serial for one in file.live for serial in (one.start, one.end)}
        for flag, ends in (("yanked", {one.start for one in file.yanked}), ("unyanked", {i.end for i in file.yanked})):
            assert {serial for serial, name in begun(story, flag) if name == file.filename} == ends - edges - {None}
    log = {(change.serial, change.cause, change.filename) for change in logged if change.cause in WITHOUT_EVENT}
    named = [
        (entry.serial, entry.kind, name) for entry in story if entry.kind in WITHOUT_EVENT for name in entry.filenames
    ]
    assert set(named) == log
    assert len(named) == len(log)


def rising(serials: list[int | None]) -> list[int | None]:
    """Return the serials in ascending order; each None stays in its place."""
    ordered = iter(sorted(serial for serial in serials if serial is not None))
    return [None if serial is None else next(ordered) for serial in serials]


def begun(story: list[HistoryItem], flag: str) -> Counter[tuple[int, str]]:
    return Counter((entry.serial, filename) for entry in story for filename in getattr(entry, flag))


def test_change_without_event_is_described_as_unexplained():
    pages = [Sighting(5, 5, {SDIST: False}, is_page=True), Sighting(9, 9, {WHEEL: False}, is_page=True)]
    added = event(5, f"add source file {SDIST}")
    folded = fold([added], pages, known_since=0, events_through=9, version_of=version_of)
    assert folded is not None
    history = folded.histories
    files = [FileLife(name, "data", None, one.live, one.yanked) for name, one in history.items()]
    logged = [LoggedChange(one.serial, name, one.cause) for name in history for one in history[name].changes]
    upload, change = build_history([event(5, f"add source file {SDIST}")], logged, files, [])
    assert (upload.live, upload.away) == ((SDIST,), ())
    assert (change.serial, change.at, change.kind) == (9, None, UNEXPLAINED)
    assert (change.live, change.away) == ((WHEEL,), (SDIST,))
    assert change.text.endswith(f": {WHEEL}, {SDIST}")


def test_unconfirmed_logged_change_is_described_as_unconfirmed():
    [upload, change] = build_history(
        [event(3, f"add source file {SDIST}")],
        [LoggedChange(3, SDIST, "add file"), LoggedChange(7, SDIST, BASELINE)],
        [life(SDIST, (3, None))],
        [],
    )
    assert upload.live == (SDIST,)
    assert (change.kind, change.filenames) == (BASELINE, (SDIST,))
    assert mentions(change.text, SDIST)


def test_description_of_many_files_names_a_few():
    files = [life(f"demo-{number}.0.zip", (4, None)) for number in range(8)]
    [entry] = build_history([], [LoggedChange(4, file.filename, BASELINE) for file in files], files, [])
    assert mentions(entry.text, *(f"demo-{number}.0.zip" for number in range(5)), 3)
    assert not mentions(entry.text, "demo-5.0.zip")
    assert len(entry.live) == len(entry.filenames) == 8


def test_project_name_can_be_registered_again():
    actions = ["create", f"add source file {SDIST}", "remove project", "create", f"add source file {SDIST}", "create"]
    story = build_history([event(serial, action, None) for serial, action in enumerate(actions, 1)], [], [], [])
    first, upload, _, again, second_upload, last = (entry.text for entry in story)
    assert mentions(first, "Demo")
    assert mentions(again, "Demo")
    assert (last, again == first) == (first, False)
    assert mentions(upload, SDIST)
    assert second_upload == upload
    removed = build_history([event(1, "remove", None), event(2, f"add source file {SDIST}")], [], [], [])
    assert mentions(removed[1].text, SDIST)
    assert removed[1].text != upload


def test_unknown_actions_are_described_verbatim():
    story = build_history([event(1, "paint it blue"), event(2, "add Owner someone", None)], [], [], [])
    assert [entry.kind for entry in story] == [Action.UNKNOWN, Action.IGNORED]
    assert mentions(story[0].text, "paint it blue")
    assert story[1].text == "add Owner someone"


def test_upload_has_its_read_outcome():
    broken = FileLife(WHEEL, "error", "corrupt archive", (Interval(1, None),), ())
    [entry] = build_history([event(1, f"add py3 file {WHEEL}")], [], [broken], [])
    assert (entry.outcome, entry.error) == ("error", "corrupt archive")


def test_visits_are_placed_at_the_last_event_known_to_them():
    events = [event(serial, "paint it blue") for serial in (2, 4, 6)]
    visits = [
        visit(1, None, outcome="failed"),
        visit(2, 4, attempt=2),
        visit(3, None, outcome="failed"),
        visit(4, None, outcome="ongoing"),
    ]
    story = build_history(events, [], [], visits)
    assert [(entry.serial, entry.visit) for entry in story] == [
        (2, None),
        (4, None),
        (4, 1),
        (4, 2),
        (6, None),
        (6, 3),
        (6, 4),
    ]
    assert mentions(story[3].text, "visit 2", "range:0-9", "attempt 2", "full", "serial 4", "2 files")
    assert mentions(story[2].text, "visit 1", "range:0-9", "failed")
    assert story[2].error == "HTTP 503"


EVENTS = [
    (2, 1, "1.0", "add source file demo-1.0.tar.gz"),
    (3, 1, None, "add Owner somebody"),
    (5, 1, "2.0", "add source file demo-2.0.tar.gz"),
    (6, 1, "2.0", "add py3 file demo-2.0-py3-none-any.whl"),
    (7, 1, "2.0", "yank release"),
    (8, 2, None, "remove project"),
]


def store(catalog: Catalog) -> None:
    with catalog.write() as connection:
        for number, name in ((1, "Demo"), (2, "other")):
            values = {"id": number, "normalized": name.lower(), "name": name, "bucket": 0, "shard": 0, "known_since": 0}
            connection.execute(insert(projects).values(values))
        for serial, project, version, action in EVENTS:
            values = {"serial": serial, "project_id": project, "name": "Demo", "version": version}
            connection.execute(insert(events).values(values | {"timestamp": 100 + serial, "action": action, "kind": 0}))


def shown(catalog: Catalog, serial: int, most: int) -> list[tuple[int, int, str, str]]:
    with catalog.read() as connection:
        found = recent_events(connection, serial, most)
    return [(entry["first_serial"], entry["serial"], entry["project"], entry["text"]) for entry in found]


def test_newest_entries_come_first_and_release_uploads_are_grouped(catalog: Catalog):
    store(catalog)
    found = shown(catalog, 8, 9)
    assert [entry[:3] for entry in found] == [(8, 8, "other"), (7, 7, "demo"), (5, 6, "demo"), (2, 2, "demo")]
    assert mentions(found[1][3], "2.0")
    assert mentions(found[2][3], 2, "2.0")
    assert mentions(found[3][3], "demo-1.0.tar.gz")


def test_history_ends_at_the_serial_and_at_the_limit(catalog: Catalog):
    store(catalog)
    assert [entry[1] for entry in shown(catalog, 5, 9)] == [5, 2]
    assert [entry[1] for entry in shown(catalog, 8, 1)] == [8]
    assert shown(catalog, 1, 9) == []


def test_serials_without_following_are_omitted(catalog: Catalog):
    store(catalog)
    with catalog.write() as connection:
        connection.execute(
            insert(catalog_state).values(
                id=1,
                index_url="http://index.invalid/",
                events_since=0,
                events_through=9,
                exact_from=0,
                next_dump_sequence=1,
                follows_all=False,
            )
        )
        connection.execute(insert(followed_intervals).values(project_id=2, start=1, exact_from=1))
    assert [entry[2] for entry in shown(catalog, 8, 9)] == ["other"]
