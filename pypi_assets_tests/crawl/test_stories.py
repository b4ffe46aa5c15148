"""The stories and visits of projects that a crawl has followed."""

import pytest
from starlette.responses import PlainTextResponse

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.derived.file_history import BASELINE
from pypi_assets.catalog.observed.projects import find_project
from pypi_assets.catalog.reports.past_visits import compare_visits, past_visits
from pypi_assets.catalog.reports.project_history import VISIT, Entry, read_history
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.index.actions import Action
from pypi_assets_tests.served_index import ServedIndex


def story_of(catalog: Catalog, name: str) -> list[Entry]:
    with catalog.read() as connection:
        project = find_project(connection, name)
        assert project is not None
        return read_history(connection, project)


def test_a_story_with_every_kind_of_event(index: ServedIndex, catalog: Catalog):
    crawler = index.crawler(catalog)
    wheel, sdist = index.wheel("demo", "1.0"), index.sdist("demo", "1.0")
    crawl_full(crawler)
    baseline = index.serial
    history = index.history
    expected = []
    for what, does in {
        "release 1.0 yanked": lambda: history.yank("demo", "1.0"),
        "release 1.0 unyanked": lambda: history.unyank("demo", "1.0"),
        "project quarantined": lambda: history.quarantine("demo"),
        "quarantine of the project cleared": lambda: history.unquarantine("demo"),
        "release 1.0 quarantined": lambda: history.quarantine_release("demo", "1.0"),
        "quarantine of release 1.0 cleared": lambda: history.unquarantine_release("demo", "1.0"),
        "demo-2.0-py3-none-any.whl uploaded": lambda: index.raw("demo-2.0-py3-none-any.whl", b"no zip"),
        f"{sdist} removed": lambda: history.remove_file(sdist),
        "release 2.0 removed": lambda: history.remove_release("demo", "2.0"),
        "project removed": lambda: history.remove_project("demo"),
        "demo-3.0-py3-none-any.whl uploaded": lambda: index.wheel("Demo", "3.0"),
    }.items():
        does()
        expected.append((index.serial, what))
        if "uploaded" in what:
            crawl_incremental(crawler)
    crawl_incremental(crawler)
    story = story_of(catalog, "demo")
    by_serial = {entry.serial: entry for entry in story if entry.kind in set(Action)}
    assert [(serial, by_serial[serial].text) for serial, _ in expected] == expected
    numbers = [
        (len(entry.live), len(entry.away), len(entry.yanked), len(entry.unyanked)) for entry in by_serial.values()
    ]
    done = [numbers[list(by_serial).index(serial)] for serial, _ in expected]
    assert done == [
        (0, 0, 2, 0),
        (0, 0, 0, 2),
        (0, 2, 0, 0),
        (2, 0, 0, 0),
        (0, 2, 0, 0),
        (2, 0, 0, 0),
        (1, 0, 0, 0),
        (0, 1, 0, 0),
        (0, 1, 0, 0),
        (0, 1, 0, 0),
        (1, 0, 0, 0),
    ]
    uploads = [(entry.filenames, entry.outcome, entry.error) for entry in story if entry.kind == Action.ADD_FILE]
    assert uploads == [
        (("demo-2.0-py3-none-any.whl",), "error", "corrupt archive"),
        (("demo-3.0-py3-none-any.whl",), "data", None),
    ]
    assert "name registered again: Demo" in [entry.text for entry in story]
    [beginning] = [entry for entry in story if entry.kind == BASELINE]
    assert (beginning.serial, beginning.live) == (baseline, (wheel, sdist))
    visits = [entry for entry in story if entry.kind == VISIT]
    assert [(entry.visit, entry.outcome) for entry in visits] == [(1, "full"), (2, "full"), (3, "full")]
    crawl_full(crawler, with_history=True)
    replayed = story_of(catalog, "demo")
    assert [entry.text for entry in replayed if entry.serial <= baseline and entry.live] == [
        f"{wheel} uploaded",
        f"{sdist} uploaded",
    ]
    assert [entry.text for entry in replayed if entry.kind == BASELINE] == [
        f"there since before the first known event: {wheel}, {sdist}; what is known now does not confirm it"
    ]


def test_visits_are_listed_with_what_they_saw(index: ServedIndex, catalog: Catalog):
    wheel, sdist = index.wheel("demo", "1.0"), index.sdist("demo", "1.0")
    crawler = index.crawler(catalog)
    crawl_full(crawler)
    index.history.yank("demo", "1.0")
    index.history.remove_file(sdist)
    newer = index.wheel("demo", "2.0")
    crawl_incremental(crawler)
    index.history.remove_project("demo")
    crawl_incremental(crawler)
    index.wheel("demo", "3.0")
    refused = []

    def refuse(request):
        if "/simple/demo/" in request.url.path and len(refused) < 1:
            refused.append(request)
            return PlainTextResponse("", 503)
        return None

    index.faults = refuse
    crawl_incremental(index.crawler(catalog, retry_deadline_s=5.0))
    with catalog.read() as connection:
        demo = find_project(connection, "demo")
        assert demo is not None
        visits = past_visits(connection, demo)
        assert [(one.visit, one.outcome, one.attempt, one.files) for one in visits] == [
            (1, "full", 1, 2),
            (2, "full", 1, 2),
            (3, "not_found", 1, 0),
            (4, "failed", 1, None),
            (5, "full", 2, 1),
        ]
        assert [one.page_serial for one in visits[:2]] == [visits[0].seen_through, visits[1].seen_through]
        assert all(one.ended_at is not None and one.ended_at >= one.started_at for one in visits)
        assert visits[3].snapshot is None
        assert "503" in str(visits[3].text)
        assert len({one.snapshot for one in visits}) == 5
        differences = [(one.filename, one.change) for one in compare_visits(connection, demo, 1, 2)]
        assert differences == [(wheel, "yanked"), (sdist, "went"), (newer, "came")]
        back = [(one.filename, one.change) for one in compare_visits(connection, demo, 2, 1)]
        assert back == [(wheel, "unyanked"), (sdist, "came"), (newer, "went")]
        assert compare_visits(connection, demo, 1, 1) == []
        with pytest.raises(
            CatalogError, match=r"visit 4 of demo saw no page \(failed\); see `pypi-assets visits demo`"
        ):
            compare_visits(connection, demo, 1, 4)
        with pytest.raises(CatalogError, match="demo has no visit 9; see `pypi-assets visits demo`"):
            compare_visits(connection, demo, 9, 1)
