"""`pypi-assets journal takedown` and `journal takedowns`: records go, and what was taken down is listed and lifted."""

import json

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import TwoVisits
from pypi_assets_tests.named import unnamed


def lines(commands: Commands) -> list[dict]:
    return [json.loads(line) for line in commands.done("journal", "tail", "--json").stdout.splitlines()]


def test_records_are_taken_down_and_listed(commands: Commands, two_visits: TwoVisits) -> None:
    commands.done("journal", "write")
    name = next(one["normalized"] for one in lines(commands) if one["stream"] == "observed" and one["normalized"])
    assert commands.done("journal", "takedowns").stderr
    taken = commands.json("journal", "takedown", name, "--reason", "a court", "--hide-name")
    assert taken == {"takedown": 1, "records": sum(one["kind"] == "taken down" for one in lines(commands))}
    assert taken["records"] > 0
    assert name not in {one["normalized"] for one in lines(commands)}
    commands.done("journal", "verify")
    [row] = commands.json("journal", "takedowns")
    assert (row["id"], row["project"], row["reason"], row["hides_name"]) == (1, name, "a court", True)
    assert row["done"] is not None
    assert commands.done("journal", "takedowns").stdout.startswith("1\t")
    commands.refused("journal", "takedown", "--reason", "x", exit_code=2)
    assert unnamed(commands.refused("journal", "takedowns", "--lift", 9, exit_code=2), "9") == []
    assert "lifted" in commands.done("journal", "takedowns", "--lift", 1).stderr
    assert commands.json("journal", "takedowns") == []
