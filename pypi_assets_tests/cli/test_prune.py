"""`pypi-assets admin prune`: what is deleted is counted, and what users see later names what is gone."""

import pytest
from sqlalchemy import update

from pypi_assets.catalog import pruning
from pypi_assets.catalog.database import open_existing_catalog
from pypi_assets.catalog.tables import visits
from pypi_assets.settings import load_settings
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import TwoVisits
from pypi_assets_tests.named import unnamed


def test_visits_that_were_deleted_are_reported(
    commands: Commands, two_visits: TwoVisits, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unnamed(commands.done("admin", "prune", "--dry-run").stdout, "0") == []
    assert commands.json("admin", "prune")["visits"] == 0
    catalog = open_existing_catalog(load_settings().resolved_database_url)
    with catalog.write() as connection:
        connection.execute(update(visits).values(started_at=0.0))
    catalog.close()
    assert commands.json("admin", "prune")["visits"] == 0  # among the first
    monkeypatch.setattr(pruning, "FIRST_VISITS_KEPT", 0)
    assert unnamed(commands.done("admin", "prune").stdout, "1") == []
    for shown in (commands.done("admin", "visits", "demo"), commands.done("history", "demo")):
        assert unnamed(shown.stderr, 1, "PYPI_ASSETS_VISITS_KEPT_DAYS") == []
    assert [one["visit"] for one in commands.json("admin", "visits", "demo")] == [2]
    assert (
        unnamed(
            commands.refused("admin", "visits", "demo", "--compare", 1, 2), "1", "demo", "pypi-assets admin visits demo"
        )
        == []
    )
