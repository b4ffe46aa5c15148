"""`pypi-assets report removals`: which share of uploads was removed how soon."""

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.served_index import ServedIndex


def test_the_share_of_removed_uploads_is_shown(commands: Commands, index: ServedIndex) -> None:
    commands.done("crawl", "full")
    assert "no upload is known as of serial" in commands.done("report", "removals").stderr
    for version in ("1.0", "2.0", "3.0", "4.0"):
        index.wheel("demo", version)
    index.history.remove_release("demo", "1.0")
    commands.done("crawl", "incremental")
    found = commands.json("report", "removals", "--within", "7, 1,1")
    assert (found["serial"], found["uploads"]) == (index.serial, 4)
    assert [window["within_days"] for window in found["windows"]] == [1, 7]
    assert all(window["uploads"] == 0 and window["either_share"] is None for window in found["windows"])
    result = commands.done("report", "removals")
    assert [line.split("\t") for line in result.stdout.splitlines()] == [
        [days, "0", "0", "0", "0", "-"] for days in ("1 day", "3 days", "7 days", "14 days")
    ]
    assert f"4 uploads since {found['first_upload'][:10]}, as of serial {index.serial}\n" in result.stderr


@pytest.mark.parametrize("wrong", ["", "0", "1,,3", "-1", "1.5", "soon", "3651", "٣", ",".join(map(str, range(1, 30)))])
def test_other_windows_are_refused(commands: Commands, wrong: str) -> None:
    assert "give at most 20 numbers of days, 1 to 3650" in commands.refused(
        "report", "removals", "--within", wrong, exit_code=2
    )
