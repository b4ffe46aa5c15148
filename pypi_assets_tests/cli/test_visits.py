"""The commands that list visits, and that visit projects now."""

import json
from functools import partial

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from pypi_assets.catalog.work.requested_visits import request_visits
from pypi_assets.crawl import requested
from pypi_assets.crawl.crawler import Crawler
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import TwoVisits
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


def test_visit_prints_what_changed(commands: Commands, index: ServedIndex, two_visits: TwoVisits) -> None:
    new = index.wheel("demo", "3.0")
    [answer] = commands.json("visit", "Demo")
    assert (answer["state"], answer["outcome"]) == ("done", "full")
    assert [(one["change"], one["filename"]) for one in answer["changed"]] == [("came", new)]
    assert [visit["scope"] for visit in commands.json("visits", "demo")][-1] == "requested"
    done = commands.done("visit", "demo")
    assert unnamed(done.stderr, "demo") == []
    commands.done("crawl", "incremental")
    assert new in commands.done("lookup", "files", "demo").stdout or commands.json("history", "demo")


def test_visit_without_waiting_is_made_by_the_next_crawl(
    commands: Commands, index: ServedIndex, two_visits: TwoVisits
) -> None:
    [first] = commands.json("visit", "demo", "--no-wait")
    [again] = commands.json("visit", "demo", "--no-wait")
    assert (first["state"], first["place"]) == ("queued", 1)
    assert again == first
    commands.done("crawl", "incremental")
    [later] = commands.json("visit", "demo", "--no-wait")
    assert later["id"] > first["id"]


def test_visit_that_is_requested_again_before_its_end_is_made_again(
    commands: Commands, index: ServedIndex, two_visits: TwoVisits, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_workload, new = requested.read_workload, list[str]()

    def read_after_request(crawler: Crawler, workload: str, *, only_due: bool) -> object:
        if not new:  # the page was visited, and its visit has not ended
            new.append(index.wheel("demo", "3.0"))
            catalog = crawler.catalog
            catalog.transact(partial(request_visits, names=["demo"], now=catalog.clock()))
        return read_workload(crawler, workload, only_due=only_due)

    monkeypatch.setattr(requested, "read_workload", read_after_request)
    [answer] = commands.json("visit", "demo")
    assert (answer["state"], answer["outcome"]) == ("done", "full")
    assert [one["filename"] for one in answer["changed"]] == new


def test_failing_page_is_named_with_its_next_attempt(
    commands: Commands, index: ServedIndex, two_visits: TwoVisits
) -> None:
    def busy(request: Request) -> PlainTextResponse | None:
        return PlainTextResponse("slow down", 429) if request.url.path == "/simple/demo/" else None

    index.faults = busy
    result = commands.run("visit", "demo", "--json")
    assert result.exit_code == 1
    [answer] = json.loads(result.stdout)
    assert "429" in answer["error"]
    [failing] = commands.json("visits")
    assert (failing["project"], failing["outcome"]) == ("demo", "failed")


def test_unknown_project_is_named(commands: Commands, two_visits: TwoVisits) -> None:
    assert unnamed(commands.refused("visit", "demo", "nowhere"), "nowhere") == []
    assert unnamed(commands.refused("visit", "nowhere", "--no-wait"), "nowhere") == []


def test_projects_are_listed_by_state(commands: Commands, index: ServedIndex, two_visits: TwoVisits) -> None:
    index.wheel("other", "1.0")
    commands.done("crawl", "incremental")
    stale = commands.json("visits", "--state", "stale")
    assert [(row["project"], row["outcome"]) for row in stale] == [("demo", "full"), ("other", "full")]
    assert len(commands.json("visits", "--state", "stale", "--limit", 1)) == 1
    assert commands.json("visits", "--state", "never") == commands.json("visits", "--state", "failing") == []
