"""`pypi-assets journal replay` makes a catalog that answers as the one that wrote the journal."""

from pathlib import Path

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import TwoVisits


def test_a_catalog_is_made_of_the_journal(commands: Commands, two_visits: TwoVisits, tmp_path: Path) -> None:
    commands.done("journal", "write")
    url = f"sqlite:///{tmp_path}/replayed.sqlite"
    done = commands.json("journal", "replay", "--into", url)
    assert (done["through"], done["dump"], done["began"]) == (two_visits.serial, None, "from nothing")
    again = commands.done("journal", "replay", "--into", url).stderr
    assert "began where it was stopped: 0 records entered" in again
    assert f"answers for the serials {done['exact_from']:,} to {two_visits.serial:,}" in again


def test_what_cannot_be_replayed_is_refused_by_name(commands: Commands, two_visits: TwoVisits, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/replayed.sqlite"
    assert "journal write" in commands.refused("journal", "replay", "--into", url)
    commands.done("journal", "write")
    beyond = two_visits.serial + 1
    assert f"ends at {two_visits.serial}" in commands.refused("journal", "replay", "--into", url, "--to", beyond)
    own = f"sqlite:///{commands.home}/catalog.sqlite"
    assert "not empty" in commands.refused("journal", "replay", "--into", own)
