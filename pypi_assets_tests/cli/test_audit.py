"""`pypi-assets admin audit`: the drift that it finds."""

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


def test_an_audit_reports_the_drift_that_it_found(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    assert commands.json("admin", "audit", "--share", 0)["visited"] == 0
    index.history.archive("demo")
    found = commands.done("admin", "audit", "--share", 100).stdout
    assert unnamed(found, index.serial, "1", "demo") == []
    again = commands.json("admin", "audit", "--share", 100)
    assert (again["drift"], again["share_percent"], again["visits_given_up"]) == ({}, 100, 0)
