"""`pypi-assets admin report`: the share of uploads removed within a time, and requirements that became unsolvable."""

import msgspec
import pytest

from pypi_assets.components import storage_from
from pypi_assets.resolve.solvability import read_day, write_day
from pypi_assets.settings import load_settings
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.resolve.test_solvability_files import DAY, MADE
from pypi_assets_tests.served_index import ServedIndex


def test_share_of_removed_uploads_is_shown(commands: Commands, index: ServedIndex) -> None:
    commands.done("crawl", "full")
    assert commands.done("admin", "report", "removals").stderr
    for version in ("1.0", "2.0", "3.0", "4.0"):
        index.wheel("demo", version)
    index.history.remove_release("demo", "1.0")
    commands.done("crawl", "incremental")
    found = commands.json("admin", "report", "removals", "--within", "7, 1,1")
    assert (found["serial"], found["uploads"]) == (index.serial, 4)
    assert [window["within_days"] for window in found["windows"]] == [1, 7]
    assert all(window["uploads"] == 0 and window["either_share"] is None for window in found["windows"])
    result = commands.done("admin", "report", "removals")
    assert [line.split("\t") for line in result.stdout.splitlines()] == [
        [days, "0", "0", "0", "0", "-"] for days in ("1 day", "3 days", "7 days", "14 days")
    ]
    assert unnamed(result.stderr, "4", found["first_upload"][:10], index.serial) == []


@pytest.mark.parametrize("wrong", ["", "0", "1,,3", "-1", "1.5", "soon", "3651", "٣", ",".join(map(str, range(1, 30)))])
def test_invalid_windows_are_rejected(commands: Commands, wrong: str) -> None:
    assert unnamed(commands.refused("admin", "report", "removals", "--within", wrong, exit_code=2), "1", "3650") == []


def test_solvability_of_a_day_shows_losses_first(commands: Commands, index: ServedIndex) -> None:
    commands.done("crawl", "full")
    commands.refused("admin", "report", "solvability")
    write_day(storage_from(load_settings()), MADE)
    result = commands.done("admin", "report", "solvability")
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert [row[:2] for row in rows] == [["broken", "here"], ["odd", "here"], ["broken", "there"]]
    assert unnamed(rows[0][3], "1300", "Lib") == []
    assert rows[2][2] == "limit"
    assert unnamed(result.stderr, "2026-03-02", "1350", "3", "6", "2", "1") == []
    found = commands.json("admin", "report", "solvability", "--day", DAY)
    assert msgspec.convert(found, type(MADE)) == MADE == read_day(storage_from(load_settings()), DAY)
    assert found["projects"][0]["outcomes"]["here"] == {"version": "2.1", "pins": {"demo": "2.1", "six": "1.16"}}
    write_day(storage_from(load_settings()), msgspec.structs.replace(MADE, before=None))
    assert commands.json("admin", "report", "solvability")["before"] is None
    assert unnamed(commands.done("admin", "report", "solvability").stderr, "1350") == []


def test_days_without_a_report_are_rejected(commands: Commands, index: ServedIndex) -> None:
    commands.done("crawl", "full")
    write_day(storage_from(load_settings()), MADE)
    assert unnamed(commands.refused("admin", "report", "solvability", "--day", "2026-03-03"), "2026-03-02") == []
    for wrong in ("yesterday", "2026-02-30", ""):
        refusal = commands.refused("admin", "report", "solvability", "--day", wrong, exit_code=2)
        assert unnamed(refusal, "2026-03-01") == []
