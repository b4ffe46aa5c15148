"""`pypi-assets history`: the events and visits of one project, by serial."""

import re

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import TwoVisits
from pypi_assets_tests.named import unnamed


def test_history_has_events_and_visits_of_a_project(commands: Commands, two_visits: TwoVisits) -> None:
    first, broken = two_visits.first_file, two_visits.second_file
    baseline, serial = two_visits.baseline, two_visits.serial
    rows = [line.split("\t") for line in commands.done("history", "demo").stdout.splitlines()]
    assert [(serial, live, away) for serial, _, _, live, away in rows] == [
        (str(baseline), "1", "0"),
        (str(baseline), "0", "0"),
        (str(serial - 1), "1", "0"),
        (str(serial), "0", "0"),
        (str(serial), "0", "0"),
    ]
    named = [
        (first,),
        (1, "crawl:1", baseline),
        (broken, "corrupt archive"),
        ("1.0", 1),
        (2, f"range:{baseline}-{serial}", serial),
    ]
    assert [unnamed(row[2], *values) for row, values in zip(rows, named, strict=True)] == [[]] * 5
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", rows[-1][1])
    entries = commands.json("history", "demo")
    assert [(entry["kind"], entry["live"]) for entry in entries if entry["live"]] == [
        ("baseline", [first]),
        ("add file", [broken]),
    ]
    ignored = [entry for entry in commands.json("history", "demo", "--all") if entry not in entries]
    assert {(entry["kind"], entry["text"]) for entry in ignored} == {("ignored", "new release")}
