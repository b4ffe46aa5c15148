"""`pypi-assets history`: what happened to one project, by serial."""

import re

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import TwoVisits


def test_the_history_of_a_project_has_its_events_and_visits(commands: Commands, two_visits: TwoVisits) -> None:
    first, broken = two_visits.first_file, two_visits.second_file
    baseline, serial = two_visits.baseline, two_visits.serial
    rows = [line.split("\t") for line in commands.done("history", "demo").stdout.splitlines()]
    second_visit = f"visit 2 (range:{baseline}-{serial}): full, page of serial {serial}, 2 files"
    assert [(serial, what, live, away) for serial, _, what, live, away in rows] == [
        (str(baseline), f"there since before the first known event: {first}", "+1", ""),
        (str(baseline), f"visit 1 (crawl:1): full, page of serial {baseline}, 1 files", "", ""),
        (str(serial - 1), f"{broken} uploaded: error: corrupt archive", "+1", ""),
        (str(serial), "release 1.0 yanked; 1 files yanked", "", ""),
        (str(serial), second_visit, "", ""),
    ]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", rows[-1][1])
    entries = commands.json("history", "demo")
    assert [(entry["kind"], entry["live"]) for entry in entries if entry["live"]] == [
        ("baseline", [first]),
        ("add file", [broken]),
    ]
    ignored = [entry for entry in commands.json("history", "demo", "--all") if entry not in entries]
    assert {(entry["kind"], entry["text"]) for entry in ignored} == {("ignored", "new release")}
