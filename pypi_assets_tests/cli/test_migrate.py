"""`pypi-assets admin migrate`: makes the tables, then reports that they are up to date."""

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed


def test_the_tables_of_a_catalog_are_made_and_then_up_to_date(commands: Commands) -> None:
    commands.done("admin", "migrate")
    migrated = commands.json("admin", "migrate")
    assert migrated["before"] == migrated["after"]
    assert unnamed(commands.done("admin", "migrate").output, migrated["after"]) == []
