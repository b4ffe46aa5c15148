"""The command `queue` shows what comes next."""

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.served_index import ServedIndex


def test_queue_shows_what_the_next_round_will_choose(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.wheel("demo", "1.0")
    index.wheel("other", "1.0")
    commands.run("crawl", "full")
    monkeypatch.setenv("PYPI_ASSETS_VISIT_POLICY", "age")
    found = commands.json("queue")
    assert {one["project"] for one in found} == {"demo", "other"}
    assert {(one["workload"], one["state"], one["reason"]) for one in found} == {("revisits", "planned", "stale")}
    assert [one["place"] for one in found] == [1, 2]
    assert commands.json("queue", "--limit", "1") == found[:1]
    assert commands.json("queue", found[1]["project"].upper()) == found[1:]
    assert commands.json("queue", "unknown") == []
    shown = commands.run("queue")
    assert "age" in shown.stdout + shown.stderr
