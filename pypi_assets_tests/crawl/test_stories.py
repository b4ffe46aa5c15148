"""The histories and visits of projects that a crawl has followed."""

import pytest
from starlette.responses import PlainTextResponse

from pypi_assets.catalog.database import Catalog, CatalogError
from pypi_assets.catalog.derived.file_history import BASELINE
from pypi_assets.catalog.observed.projects import find_project
from pypi_assets.catalog.reports.past_visits import compare_visits, past_visits
from pypi_assets.catalog.reports.project_history import VISIT, HistoryItem, read_history
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.index.actions import Action
from pypi_assets_tests.naming import mentions, naming
from pypi_assets_tests.served_index import ServedIndex


def story_of(catalog: Catalog, name: str) -> list[HistoryItem]:
    with catalog.read() as connection:
        project = find_project(connection, name)
        assert project is not None
        return read_history(connection, project)


@pytest.mark.nightly
def test_history_with_every_kind_of_event(index: ServedIndex, catalog: Catalog):
    crawler = index.crawler(catalog)
    wheel, sdist = index.wheel("demo", "1.0"), index.sdist("demo", "1.0")
    crawl_full(crawler)
    baseline = index.serial
    history = index.history
    expected = []
    for kind, value, does in [
        (Action.YANK_RELEASE, "1.0", lambda: history.yank("demo", "1.0")),
        (Action.UNYANK_RELEASE, "1.0", lambda: history.unyank("demo", "1.0")),
        (Action.QUARANTINE_PROJECT, "", lambda: history.quarantine("demo")),
        (Action.UNQUARANTINE_PROJECT, "", lambda: history.unquarantine("demo")),
        (Action.QUARANTINE_RELEASE, "1.0", lambda: history.quarantine_release("demo", "1.0")),
        (Action.UNQUARANTINE_RELEASE, "1.0", lambda: history.unquarantine_release("demo", "1.0")),
        (Action.ADD_FILE, "demo-2.0-py3-none-any.whl", lambda: index.raw("demo-2.0-py3-none-any.whl", b"no zip")),
        (Action.REMOVE_FILE, sdist, lambda: history.remove_file(sdist)),
        (Action.REMOVE_RELEASE, "2.0", lambda: history.remove_release("demo", "2.0")),
        (Action.REMOVE_PROJECT, "", lambda: history.remove_project("demo")),
        (Action.ADD_FILE, "demo-3.0-py3-none-any.whl", lambda: index.wheel("Demo", "3.0")),
    ]:
        does()
        expected.append((index.serial, kind, value))
        if kind == Action.ADD_FILE:
            crawl_incremental(crawler)
    crawl_incremental(crawler)
    story = story_of(catalog, "demo")
    by_serial = {entry.serial: entry for entry in story if entry.kind in set(Action)}
    assert [(serial, by_serial[serial].kind) for serial, _, _ in expected] == [one[:2] for one in expected]
    assert [serial for serial, _, value in expected if not mentions(by_serial[serial].text, value)] == []
    numbers = [
        (len(entry.live), len(entry.away), len(entry.yanked), len(entry.unyanked)) for entry in by_serial.values()
    ]
    done = [numbers[list(by_serial).index(serial)] for serial, _, _ in expected]
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
    assert any(mentions(entry.text, "Demo") for entry in story if entry.kind == Action.CREATE_PROJECT)
    [beginning] = [entry for entry in story if entry.kind == BASELINE]
    assert (beginning.serial, beginning.live) == (baseline, (wheel, sdist))
    visits = [entry for entry in story if entry.kind == VISIT]
    assert [(entry.visit, entry.outcome) for entry in visits] == [(1, "full"), (2, "full"), (3, "full")]
    crawl_full(crawler, with_history=True)
    replayed = story_of(catalog, "demo")
    uploaded = [entry for entry in replayed if entry.serial <= baseline and entry.live]
    assert [(entry.kind, entry.filenames) for entry in uploaded] == [
        (Action.ADD_FILE, (wheel,)),
        (Action.ADD_FILE, (sdist,)),
    ]
    assert [entry.filenames for entry in replayed if entry.kind == BASELINE] == [(wheel, sdist)]


@pytest.mark.nightly
def test_visits_are_listed_with_their_findings(index: ServedIndex, catalog: Catalog):
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
        assert [(visit.visit, visit.outcome, visit.attempt, visit.files) for visit in visits] == [
            (1, "full", 1, 2),
            (2, "full", 1, 2),
            (3, "not_found", 1, 0),
            (4, "failed", 1, None),
            (5, "full", 2, 1),
        ]
        assert [visit.page_serial for visit in visits[:2]] == [visits[0].seen_through, visits[1].seen_through]
        assert all(visit.ended_at is not None and visit.ended_at >= visit.started_at for visit in visits)
        assert visits[3].snapshot is None
        assert "503" in str(visits[3].text)
        assert len({visit.snapshot for visit in visits}) == 5
        differences = [
            (difference.filename, difference.change) for difference in compare_visits(connection, demo, 1, 2)
        ]
        assert differences == [(wheel, "yanked"), (sdist, "went"), (newer, "came")]
        back = [(difference.filename, difference.change) for difference in compare_visits(connection, demo, 2, 1)]
        assert back == [(wheel, "unyanked"), (sdist, "came"), (newer, "went")]
        assert compare_visits(connection, demo, 1, 1) == []
        with pytest.raises(CatalogError, match=naming("demo", 4, "failed", "pypi-assets visits demo")):
            compare_visits(connection, demo, 1, 4)
        with pytest.raises(CatalogError, match=naming("demo", 9, "pypi-assets visits demo")):
            compare_visits(connection, demo, 9, 1)
