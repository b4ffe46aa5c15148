"""`pypi-assets blame`: the event that changed the resolution of requirements."""

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex

WHERE = ("--python", "3.12", "--platform", "linux-x86_64")


@pytest.fixture
def serials(commands: Commands, index: ServedIndex) -> dict[str, int]:
    """Return the serials after each step of a history."""
    index.wheel("lib", "1.0")
    index.wheel("app", "1.0", requires_dist=["lib>=1"])
    found = {"first": index.serial}
    index.wheel("lib", "1.1")
    found["new lib"] = index.serial
    index.wheel("other", "1.0")
    index.wheel("app", "1.0", build="2", requires_dist=["lib>=2"])
    found["rebuilt app"] = index.serial
    index.history.yank("other", "1.0", "not good")
    commands.done("crawl", "full", "--with-history")
    return found


def test_blame_names_the_upload_that_broke_the_requirements(commands: Commands, serials: dict[str, int]) -> None:
    found = commands.json("blame", "app==1.0", "--good", serials["new lib"], *WHERE)
    [change] = found["changes"]
    assert change["serial"] == serials["rebuilt app"]
    [event] = change["events"]
    assert (event["project"], event["kind"], event["version"]) == ("app", "add file", "1.0")
    assert event["filenames"] == ["app-1.0-2-py3-none-any.whl"]
    assert change["before"]["pins"] == {"app": "1.0", "lib": "1.1"}
    assert change["after"]["pins"] is None
    assert change["after"]["failure"][-1]
    result = commands.done("blame", "app==1.0", "--good", serials["new lib"], *WHERE)
    lines = result.stdout.splitlines()
    assert unnamed(lines[0], "app", "app-1.0-2-py3-none-any.whl", serials["rebuilt app"]) == []
    assert any(not unnamed(line, "2") for line in lines)
    assert any(not unnamed(line, "app", "1.0", "lib", "1.1") for line in lines)
    assert any(not unnamed(line, "lib", ">=2", "1.1") for line in lines)
    assert unnamed(result.stderr, "--all") == []


def test_blame_lists_all_changes_in_order(commands: Commands, serials: dict[str, int]) -> None:
    found = commands.json("blame", "app", "--good", serials["first"], "--all", *WHERE)
    assert [one["serial"] for one in found["changes"]] == [serials["new lib"], serials["rebuilt app"]]
    assert found["changes"][0]["pins"] == [{"normalized": "lib", "before": "1.0", "after": "1.1"}]
    assert found["is_cut"] is False
    cut = commands.json("blame", "app", "--good", serials["first"], "--all", "--limit", "1", *WHERE)
    assert [one["serial"] for one in cut["changes"]] == [serials["new lib"]]
    assert cut["is_cut"] is True
    result = commands.done("blame", "app", "--good", serials["first"], "--all", *WHERE)
    assert "  lib 1.0 -> 1.1" in result.stdout.splitlines()
    assert unnamed(result.stderr, "2") == []


def test_blame_of_equal_outcomes_exits_with_1(commands: Commands, serials: dict[str, int]) -> None:
    result = commands.run("blame", "lib", "--good", serials["new lib"], *WHERE)
    assert result.exit_code == 1
    assert result.stderr


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("lib", "--good", "5", "--bad", "5"), ("--good", "--bad", 5)),
        (("lib", "--good", "1", "--cooldown", "7d"), ("--cooldown",)),
        (("lib", "--good", "1", "--bad", "9999"), (9999,)),
        (("lib", "--good", "soon"), ("'soon'",)),
        (("--good", "1"), ()),
    ],
)
def test_blame_rejects_invalid_options(commands: Commands, serials: dict[str, int], arguments, named) -> None:
    result = commands.run("blame", *arguments, *WHERE)
    assert result.exit_code in {1, 2}
    assert unnamed(result.stderr, *named) == []
