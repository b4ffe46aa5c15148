import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.epochs import note_change
from pypi_assets.catalog.reports.moments import InexactSerialError
from pypi_assets.resolve import solvability
from pypi_assets.resolve.questions import ResolutionQuestion, parse_wanted
from pypi_assets.resolve.releases import past_index
from pypi_assets.resolve.resolving import ResolutionLimitError, UnsolvableError, resolve
from pypi_assets.resolve.solvability import (
    PLACES,
    Failure,
    Limits,
    Outcome,
    Place,
    Solvability,
    due_days,
    moment_of,
    outcome_of,
    publish_day,
    read_day,
    solvability_path,
    solve_day,
    stored_days,
)
from pypi_assets.resolve.solver_data import UnknownRequirementsError
from pypi_assets.storage.store import Storage
from pypi_assets_tests.kills import run_and_kill
from pypi_assets_tests.naming import mentions, naming
from pypi_assets_tests.resolve.dated_catalog import FIRST, PROJECTS, DatedCatalog, dated_catalog
from pypi_assets_tests.resolve.made_index import MadeIndex

LINUX, OLD_LINUX, MACOS, WINDOWS = (place.name for place in PLACES)
REQUIRED = [(name, 9 - place) for place, name in enumerate(PROJECTS)]
LIMITS = Limits(10_000, 60.0)


def day(number: int) -> date:
    return FIRST + timedelta(days=number)


@pytest.fixture
def dated(tmp_path: Path) -> Iterator[DatedCatalog]:
    made = dated_catalog(tmp_path)
    yield made
    made.catalog.close()


def fill(dated: DatedCatalog) -> None:
    dated.add(day(0), "app", "1", ("Lib>=1", "winlib; sys_platform == 'win32'"))
    dated.add(day(0), "Lib", "1")
    dated.add(day(0), "winlib", "1")
    dated.add(day(1), "app", "2", ("Lib>=1", "winlib; sys_platform == 'win32'"))
    dated.add(day(1), "other", "1")
    dated.remove(day(1), "winlib-1-py3-none-any.whl")
    dated.add(day(3), "Lib", "2", requires_python=">=3.12")
    dated.remove(day(3), "Lib-1-py3-none-any.whl")
    dated.add(day(3), "winlib", "2")
    dated.complete()


STORY = [("app", 3), ("lib", 2)]


def test_day_lists_solvable_projects_and_breaking_changes(dated: DatedCatalog) -> None:
    fill(dated)
    first = solve_day(dated.catalog, STORY, day(0))
    assert (first.moment, first.before) == (moment_of(dated.catalog, day(0)), None)
    assert (first.moment.serial, first.moment.epoch) == (3, 3)
    assert first.counts["solvable"] == 8
    assert (first.newly_unsolvable, first.newly_solvable) == ((), ())
    second = solve_day(dated.catalog, STORY, day(1), first)
    assert second.before == first.moment
    app, lib = second.projects
    assert (app.name, app.dependents, list(app.outcomes)) == ("app", 3, [place.name for place in PLACES])
    assert app.outcomes[LINUX] == Outcome("2", {"app": "2", "lib": "1"})
    assert lib.outcomes[WINDOWS] == Outcome("1", {"lib": "1"})
    assert app.outcomes[WINDOWS].failure == Failure.UNSOLVABLE
    assert mentions(app.outcomes[WINDOWS].proof[0], "winlib")
    assert mentions(app.outcomes[WINDOWS].proof[-1], "app")
    [lost] = second.newly_unsolvable
    assert (lost.project, lost.environment, lost.version) == ("app", WINDOWS, "1")
    assert lost.events is not None
    [event] = lost.events
    assert (event.serial, event.project, event.kind) == (6, "winlib", "remove file")
    assert event.at == datetime(2026, 3, 2, 0, 0, 6, tzinfo=UTC)
    assert (event.filenames, event.files) == (("winlib-1-py3-none-any.whl",), 1)
    quiet = solve_day(dated.catalog, STORY, day(2), second)
    assert quiet.moment.serial == second.moment.serial
    assert quiet.projects == second.projects
    assert (quiet.newly_unsolvable, quiet.newly_solvable) == ((), ())
    last = solve_day(dated.catalog, STORY, day(3), quiet)
    assert [(change.project, change.environment, change.version) for change in last.newly_solvable] == [
        ("app", WINDOWS, "2")
    ]
    assert [(change.project, change.environment) for change in last.newly_unsolvable] == [
        ("app", OLD_LINUX),
        ("lib", OLD_LINUX),
    ]
    assert {event.serial for change in last.newly_unsolvable for event in change.events or ()} == {8}


def test_number_of_searched_losses_is_limited(dated: DatedCatalog) -> None:
    fill(dated)
    made = solve_day(dated.catalog, STORY, day(3), most_searches=1)
    assert [(change.project, change.events is None) for change in made.newly_unsolvable] == [
        ("app", False),
        ("lib", True),
    ]
    assert made.without_search == 1


def test_too_long_search_leaves_a_loss_without_event(dated: DatedCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(dated)

    def exceed(*_: object) -> None:
        raise ResolutionLimitError("too long")

    monkeypatch.setattr(solvability.blame, "blame", exceed)
    [lost] = solve_day(dated.catalog, STORY, day(1)).newly_unsolvable
    assert lost.events == ()


def test_unfinished_day_and_day_before_first_serial_are_rejected(dated: DatedCatalog) -> None:
    with pytest.raises(InexactSerialError, match=naming("2026-02-28")):
        solve_day(dated.catalog, STORY, day(-1))
    fill(dated)
    with pytest.raises(InexactSerialError, match=naming("2026-02-28")):
        solve_day(dated.catalog, STORY, day(-1))
    noon = datetime(2026, 3, 4, 12, tzinfo=UTC).timestamp()
    object.__setattr__(dated.catalog, "clock", lambda: noon)
    with pytest.raises(InexactSerialError, match=naming("2026-03-04")):
        solve_day(dated.catalog, STORY, day(3))
    assert solve_day(dated.catalog, STORY, day(2)).moment.serial == 6


def test_each_kind_of_failure_costs_one_record() -> None:
    versions = {str(number): [f"b=={number % 7}", f"c=={number % 5}"] for number in range(60)}
    hostile = {
        "a": versions,
        "b": {str(number): [f"c>{number}"] for number in range(7)},
        "c": {str(number): [] for number in range(5)},
    }
    index = MadeIndex({**hostile, "unread": {"1": None}, "sound": {"1": ["six"]}, "six": {"1": []}})
    outcomes = {name: outcome_of(index, (name, LINUX), LIMITS) for name in ("unread", "sound", "nothing", "no name!")}
    assert outcomes["unread"].failure == Failure.UNKNOWN_REQUIREMENTS
    assert mentions(outcomes["unread"].proof[0], "unread-1-py3-none-any.whl")
    assert outcomes["sound"] == Outcome("1", {"six": "1", "sound": "1"})
    assert (outcomes["nothing"].failure, outcomes["no name!"].failure) == (Failure.UNSOLVABLE, Failure.UNSOLVABLE)
    assert mentions(outcomes["no name!"].proof[0], "no name!")
    for limits in (Limits(3, 60.0), Limits(10_000, 0.0)):
        limited = outcome_of(index, ("a", LINUX), limits)
        assert limited.failure == Failure.LIMIT
        assert limited.proof


def test_too_long_resolution_is_neither_lost_nor_gained(dated: DatedCatalog) -> None:
    fill(dated)
    limited = solve_day(dated.catalog, STORY, day(1), limits=Limits(1, 60.0))
    assert limited.counts["limit"] == 8
    assert (limited.newly_unsolvable, limited.newly_solvable) == ((), ())


def expected_outcome(dated: DatedCatalog, serial: int, project: str, place: str) -> tuple[str, object]:
    """Return the outcome of a single resolution at a serial."""
    try:
        question = ResolutionQuestion((parse_wanted(project),), solvability._ENVIRONMENTS[place])
        return "pins", resolve(past_index(dated.catalog, serial), question).pins
    except UnsolvableError:
        return "failure", Failure.UNSOLVABLE
    except UnknownRequirementsError:
        return "failure", Failure.UNKNOWN_REQUIREMENTS


def check(dated: DatedCatalog, made: Solvability) -> None:
    """Check a day against separate resolutions at its serials."""
    keys = list(product([project.name for project in made.projects], (place.name for place in PLACES)))
    outcomes = {
        (project.name, place): outcome for project in made.projects for place, outcome in project.outcomes.items()
    }
    for key in keys:
        kind, value = expected_outcome(dated, made.moment.serial, *key)
        outcome = outcomes[key]
        assert (outcome.pins if kind == "pins" else outcome.failure) == value, key
        assert outcome.is_solvable == (kind == "pins")
    before = made.before
    if before is None:
        assert not made.newly_unsolvable
        return
    was = {key: expected_outcome(dated, before.serial, *key)[0] == "pins" for key in keys}
    lost = [(change.project, change.environment) for change in made.newly_unsolvable]
    assert lost == [key for key in keys if was[key] and not outcomes[key].is_solvable]
    gained = [(change.project, change.environment) for change in made.newly_solvable]
    assert gained == [key for key in keys if not was[key] and outcomes[key].is_solvable]
    for change in made.newly_unsolvable:
        assert change.events is not None
        [event] = change.events
        assert before.serial < event.serial <= made.moment.serial
        kinds = [
            expected_outcome(dated, at, change.project, change.environment)[0]
            for at in (event.serial - 1, event.serial)
        ]
        assert kinds == ["pins", "failure"]


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(6))
def test_days_match_separate_resolutions_in_any_order(dated: DatedCatalog, storage: Storage, seed: int) -> None:
    drawn = random.Random(seed)
    days = 5
    for number in range(days):
        for _ in range(drawn.choice([0, 2, 4, 6]) + 9 * (number == 0)):
            dated.draw(drawn, day(number))
    dated.complete()
    required = {number: drawn.sample(REQUIRED, drawn.randint(2, 4)) for number in range(days)}
    alone = {number: solve_day(dated.catalog, required[number], day(number)) for number in range(days)}
    for made in alone.values():
        check(dated, made)
    assert any(made.newly_unsolvable or made.newly_solvable for made in alone.values())
    order = [*range(days), *range(days)]
    drawn.shuffle(order)
    for number in order:
        made, size = publish_day(dated.catalog, storage, required[number], day(number))
        assert made == alone[number] == read_day(storage, day(number))
        assert storage.head(solvability_path(day(number))).size == size
    assert stored_days(storage) == [day(number) for number in range(days)]
    contents = {number: storage.get(solvability_path(day(number))) for number in range(days)}
    for number in reversed(range(days)):
        storage.delete(solvability_path(day(number)))
        publish_day(dated.catalog, storage, required[number], day(number))
    assert contents == {number: storage.get(solvability_path(day(number))) for number in range(days)}


def test_stale_previous_day_is_not_reused(dated: DatedCatalog, storage: Storage) -> None:
    fill(dated)
    publish_day(dated.catalog, storage, STORY, day(0))
    dated.small.reprocess("app-1-py3-none-any.whl", ("app",), ("never-uploaded",))
    with dated.catalog.write() as connection:
        note_change(connection, 1)
    made, _ = publish_day(dated.catalog, storage, STORY, day(1))
    assert made.before is not None
    assert made.before.epoch > made.before.serial == 3
    assert [(change.project, change.environment) for change in made.newly_solvable] == [
        ("app", LINUX),
        ("app", OLD_LINUX),
        ("app", MACOS),
    ]
    check(dated, made)
    assert read_day(storage, day(0)).moment != moment_of(dated.catalog, day(0))


def test_previous_day_is_reused_unless_corrupt(
    dated: DatedCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(dated)
    counts: list[int] = []

    def resolutions() -> int:
        counts.clear()
        publish_day(dated.catalog, storage, STORY, day(1), counts.append)
        assert counts == list(range(1, len(counts) + 1))
        return len(counts)

    assert resolutions() == 16
    publish_day(dated.catalog, storage, STORY[:1], day(0))
    assert resolutions() == 12
    publish_day(dated.catalog, storage, STORY, day(0))
    assert resolutions() == 8
    with monkeypatch.context() as patch:
        patch.setattr(solvability, "PLACES", (*PLACES[:3], Place(WINDOWS, "3.14", "windows")))
        assert resolutions() == 16
    storage.put(solvability_path(day(0)), b"damaged")
    assert resolutions() == 16


def publish(catalog: Catalog, storage: Storage) -> None:
    publish_day(catalog, storage, [("app", 3), ("lib", 2)], date(2026, 3, 2))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("step", "reached"),
    [(1, "before solvability/2026-03-02.json.gz"), (2, "after solvability/2026-03-02.json.gz"), (3, "done")],
)
def test_kill_at_any_step_leaves_a_whole_day_or_none(
    dated: DatedCatalog, storage: Storage, step: int, reached: str
) -> None:
    fill(dated)
    assert run_and_kill(publish, dated.catalog, storage, step) == reached
    if step == 1:
        assert stored_days(storage) == []
    else:
        assert read_day(storage, day(1)) == solve_day(dated.catalog, STORY, day(1))
    left = storage.get(solvability_path(day(1))) if step > 1 else None
    publish_day(dated.catalog, storage, STORY, day(1))
    assert left in {None, storage.get(solvability_path(day(1)))}


def test_missing_and_outdated_days_are_pending(dated: DatedCatalog, storage: Storage) -> None:
    assert due_days(dated.catalog, storage, day(2)) == []  # no event is known yet
    fill(dated)
    assert due_days(dated.catalog, storage, day(2)) == [day(0), day(1)]
    assert due_days(dated.catalog, storage, day(30)) == [day(number) for number in range(23, 30)]
    publish_day(dated.catalog, storage, STORY, day(1))
    publish_day(dated.catalog, storage, STORY, day(3))
    assert due_days(dated.catalog, storage, day(4)) == [day(0), day(2)]
    dated.add(day(3), "other", "2")
    dated.complete()
    assert due_days(dated.catalog, storage, day(4)) == [day(0), day(2), day(3)]
    storage.put(solvability_path(day(1)), b"damaged")
    assert due_days(dated.catalog, storage, day(4)) == [day(0), day(1), day(2), day(3)]
    late = datetime(2026, 3, 3, 23, tzinfo=UTC).timestamp()
    object.__setattr__(dated.catalog, "clock", lambda: late)
    assert due_days(dated.catalog, storage, day(4)) == [day(0), day(1)]  # the other days are not over


def test_environment_names_are_unchanged() -> None:
    assert [place.name for place in PLACES] == [
        "linux-x86_64-3.13",
        "linux-x86_64-3.11",
        "macos-arm64-3.13",
        "windows-x86_64-3.13",
    ]
