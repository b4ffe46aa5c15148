"""With the lister `simple`, every command works from the list and the pages, and the changelog gets no request."""

import math
import time
from collections import Counter
from datetime import UTC, datetime

import pytest
from starlette.requests import Request

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.served_index import ServedIndex


@pytest.fixture
def requested(index: ServedIndex, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count the requests of each first part of a path: `pypi` is the changelog."""
    counts: Counter[str] = Counter()
    monkeypatch.setenv("PYPI_ASSETS_LISTER", "simple")

    def count(request: Request) -> None:
        counts[request.url.path.split("/")[1]] += 1

    index.faults = count  # type: ignore[assignment]
    return counts


def next_second() -> str:
    """Wait for the next whole second, and return it: it lies between what was done before and what is done after."""
    second = math.ceil(time.time())
    while time.time() <= second:
        time.sleep(0.01)
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%SZ}"


@pytest.mark.nightly
def test_commands_follow_the_list_without_a_request_to_the_changelog(
    commands: Commands, index: ServedIndex, requested: Counter[str]
) -> None:
    index.wheel("demo", "1.0")
    index.wheel("other", "1.0")
    commands.build_versions()
    begun = index.serial
    index.wheel("demo", "2.0", requires_dist=["other>=1"])
    index.history.yank("demo", "1.0")
    [result] = commands.json("crawl", "incremental")["ranges"]
    assert (result["lister"], result["range"]) == ("simple", f"{begun}-{index.serial}")
    first = index.serial
    index.history.remove_project("other")
    index.wheel("third", "1.0")
    commands.done("follow", "--once")
    assert commands.json("status")["complete_serial"] == index.serial
    assert "2.0" in commands.done("lookup", "module", "demo_module").stdout
    assert commands.json("lookup", "module", "other_module") == []
    assert commands.json("lookup", "module", "other_module", "--at", first) != []
    commands.refused("lookup", "module", "other_module", "--at", begun + 1)
    commands.done("admin", "audit", "--share", "100")
    commands.done("failures", "retry")
    commands.done("blame", "demo", "--good", first, "--bad", index.serial)
    commands.done("journal", "write")
    commands.done("journal", "verify")
    commands.done("visits", "demo")
    commands.done("dump", "full")
    commands.done("leveldb", "update")
    assert requested["simple"] > 0
    assert requested["pypi"] == 0


@pytest.mark.nightly
def test_history_of_listed_changes_has_both_times_and_possible_kinds(
    commands: Commands, index: ServedIndex, requested: Counter[str]
) -> None:
    index.wheel("demo", "1.0")
    index.wheel("demo", "2.0")
    index.wheel("gone", "1.0")
    commands.done("crawl", "full")
    begun = next_second()
    index.history.yank("demo", "1.0")
    index.history.remove_release("demo", "2.0")
    index.history.remove_project("gone")
    commands.done("crawl", "incremental")
    [entry] = [one for one in commands.json("history", "demo") if one["kind"] == "listed"]
    assert entry["not_before"] < begun <= entry["at"]
    assert (entry["away"], entry["yanked"]) == (["demo-2.0-py3-none-any.whl"], ["demo-1.0-py3-none-any.whl"])
    assert "remove release" in entry["possible_kinds"]
    assert "remove project" not in entry["possible_kinds"]
    [removed] = [one for one in commands.json("history", "gone") if one["kind"] == "listed"]
    assert removed["possible_kinds"] == ["remove project"]
    assert [one["kind"] for one in commands.json("history", "gone") if one["kind"] == "unexplained"] == []
    assert requested["pypi"] == 0


@pytest.mark.nightly
def test_time_means_the_last_list_compared_by_then(
    commands: Commands, index: ServedIndex, requested: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    index.wheel("demo", "2.0")
    commands.done("crawl", "incremental")
    first = index.serial
    moment = next_second()
    index.wheel("demo", "3.0")
    commands.done("crawl", "incremental")
    result = commands.done("lookup", "module", "demo_module", "--at", moment)
    assert "2.0" in result.stdout
    assert "3.0" not in result.stdout
    assert first < index.serial
    assert requested["pypi"] == 0


@pytest.mark.nightly
def test_scope_follows_the_list_and_brings_in_requirements(
    commands: Commands, index: ServedIndex, requested: Counter[str]
) -> None:
    index.wheel("tool", "1.0")
    index.wheel("helper", "1.0")
    index.wheel("unrelated", "1.0")
    commands.done("scope", "create", "tools", "tool")
    commands.done("scope", "run", "tools")
    begun = index.serial
    assert commands.json("lookup", "module", "tool_module", "--at", begun) != []
    index.wheel("tool", "2.0", requires_dist=["helper"])
    index.wheel("unrelated", "2.0")
    commands.done("crawl", "incremental")
    assert commands.json("status")["complete_serial"] == index.serial
    assert commands.json("lookup", "module", "helper_module", "--at", index.serial) != []
    assert commands.json("lookup", "module", "unrelated_module", "--at", index.serial) == []
    index.history.remove_project("helper")
    commands.done("crawl", "incremental")
    assert commands.json("lookup", "module", "helper_module", "--at", index.serial) == []
    assert commands.json("lookup", "module", "tool_module", "--at", index.serial) != []
    assert requested["pypi"] == 0
