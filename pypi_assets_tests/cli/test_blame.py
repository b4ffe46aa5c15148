"""`pypi-assets blame`: which event changed what requirements resolve to."""

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.served_index import ServedIndex

WHERE = ("--python", "3.12", "--platform", "linux-x86_64")


@pytest.fixture
def serials(commands: Commands, index: ServedIndex) -> dict[str, int]:
    """The serials after which something happened."""
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


def test_it_names_the_upload_that_broke_the_requirements(commands: Commands, serials: dict[str, int]) -> None:
    found = commands.json("blame", "app==1.0", "--good", serials["new lib"], *WHERE)
    [change] = found["changes"]
    assert change["serial"] == serials["rebuilt app"]
    [event] = change["events"]
    assert (event["project"], event["kind"], event["version"]) == ("app", "add file", "1.0")
    assert event["filenames"] == ["app-1.0-2-py3-none-any.whl"]
    assert change["before"]["pins"] == {"app": "1.0", "lib": "1.1"}
    assert change["after"]["pins"] is None
    assert change["after"]["failure"][-1].endswith("there is no solution.")
    result = commands.done("blame", "app==1.0", "--good", serials["new lib"], *WHERE)
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"app: app-1.0-2-py3-none-any.whl uploaded, at serial {serials['rebuilt app']}, 20")
    assert "  before, 2 releases can be installed:" in lines
    assert "    app 1.0, lib 1.1" in lines
    assert any("no version of lib is >=2 (the newest is 1.1)" in line for line in lines)
    assert "there can be others, which --all finds (" in result.stderr


def test_all_changes_come_in_order(commands: Commands, serials: dict[str, int]) -> None:
    found = commands.json("blame", "app", "--good", serials["first"], "--all", *WHERE)
    assert [one["serial"] for one in found["changes"]] == [serials["new lib"], serials["rebuilt app"]]
    assert found["changes"][0]["pins"] == [{"normalized": "lib", "before": "1.0", "after": "1.1"}]
    assert found["is_cut"] is False
    cut = commands.json("blame", "app", "--good", serials["first"], "--all", "--limit", "1", *WHERE)
    assert [one["serial"] for one in cut["changes"]] == [serials["new lib"]]
    assert cut["is_cut"] is True
    result = commands.done("blame", "app", "--good", serials["first"], "--all", *WHERE)
    assert "  lib 1.0 -> 1.1" in result.stdout.splitlines()
    assert "2 changes between the serials" in result.stderr


def test_equal_outcomes_end_with_1(commands: Commands, serials: dict[str, int]) -> None:
    result = commands.run("blame", "lib", "--good", serials["new lib"], *WHERE)
    assert result.exit_code == 1
    assert "the outcome is the same at both ends" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("lib", "--good", "5", "--bad", "5"), "--good (serial 5) must come before --bad (serial 5)"),
        (("lib", "--good", "1", "--cooldown", "7d"), "with it, outcomes change without an event"),
        (("lib", "--good", "1", "--bad", "9999"), "there is no answer for serial 9999"),
        (("lib", "--good", "soon"), "neither a serial nor a time"),
        (("--good", "1"), "nothing is required"),
    ],
)
def test_what_cannot_be_answered_is_refused(commands: Commands, serials: dict[str, int], arguments, error) -> None:
    result = commands.run("blame", *arguments, *WHERE)
    assert result.exit_code in {1, 2}
    assert error in result.stderr
