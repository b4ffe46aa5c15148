"""`pypi-assets prune`: what is deleted is counted, and what users see later names what is gone."""

import pytest
from sqlalchemy import update

from pypi_assets.catalog.database import open_existing_catalog
from pypi_assets.catalog.pruning import old_rows
from pypi_assets.catalog.tables import visits
from pypi_assets.settings import load_settings
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import TwoVisits


def test_visits_that_were_deleted_are_reported(
    commands: Commands, two_visits: TwoVisits, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "visits: 0 would be deleted" in commands.done("prune", "--dry-run").stdout
    assert commands.json("prune")["visits"] == 0
    catalog = open_existing_catalog(load_settings().resolved_database_url)
    with catalog.write() as connection:
        connection.execute(update(visits).values(started_at=0.0))
    catalog.close()
    assert commands.json("prune")["visits"] == 0  # among the first
    monkeypatch.setattr(old_rows, "FIRST_VISITS_KEPT", 0)
    assert "visits: 1 deleted\n" in commands.done("prune").stdout
    gone = "1 earlier visits are not in the log, which PYPI_ASSETS_VISITS_KEPT_DAYS limits\n"
    for shown in (commands.done("visits", "demo"), commands.done("history", "demo")):
        assert gone in shown.stderr
    assert [one["visit"] for one in commands.json("visits", "demo")] == [2]
    assert commands.refused("visits", "demo", "--compare", 1, 2) == (
        "Error: visit 1 of demo is older than the log of visits and was deleted; see `pypi-assets visits demo`\n"
    )
