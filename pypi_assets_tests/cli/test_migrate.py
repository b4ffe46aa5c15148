"""`pypi-assets migrate`: makes the tables, then reports that they are up to date."""

from pypi_assets_tests.cli.commands import Commands


def test_the_tables_of_a_catalog_are_made_and_then_up_to_date(commands: Commands) -> None:
    assert "had no tables" in commands.done("migrate").output
    migrated = commands.json("migrate")
    assert migrated["before"] == migrated["after"]
    assert f"has schema {migrated['after']}, and is up to date" in commands.done("migrate").output
