"""`pypi-assets journal replay` makes a catalog that answers as the one that wrote the journal."""

from pathlib import Path

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import TwoVisits
from pypi_assets_tests.mirror.static_files import static_files
from pypi_assets_tests.named import unnamed


def test_a_catalog_is_made_of_the_journal(commands: Commands, two_visits: TwoVisits, tmp_path: Path) -> None:
    commands.done("journal", "write")
    url = f"sqlite:///{tmp_path}/replayed.sqlite"
    done = commands.json("journal", "replay", "--into", url)
    assert (done["through"], done["dump"], done["began"]) == (two_visits.serial, None, "from nothing")
    again = commands.done("journal", "replay", "--into", url).stderr
    assert unnamed(again, "0") == []
    assert unnamed(again, f"{done['exact_from']:,}", f"{two_visits.serial:,}") == []


def test_what_cannot_be_replayed_is_refused_by_name(commands: Commands, two_visits: TwoVisits, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/replayed.sqlite"
    assert unnamed(commands.refused("journal", "replay", "--into", url), "journal write") == []
    commands.done("journal", "write")
    beyond = two_visits.serial + 1
    assert unnamed(commands.refused("journal", "replay", "--into", url, "--to", beyond), two_visits.serial) == []
    own = f"sqlite:///{commands.home}/catalog.sqlite"
    commands.refused("journal", "replay", "--into", own)


@pytest.mark.nightly
def test_a_web_server_has_the_dump_to_begin_with(commands: Commands, two_visits: TwoVisits, tmp_path: Path) -> None:
    """It lists nothing: published.json names the dumps that are current."""
    commands.done("journal", "write")
    commands.done("dump", "full")
    url, last = f"sqlite:///{tmp_path}/replayed.sqlite", two_visits.serial
    with static_files(commands.home / "storage") as files:
        done = commands.json("journal", "replay", "--from", files.url, "--from-dump", "--into", url)
        assert (done["through"], done["exact_from"], done["dump"]) == (last, last, f"0-{last}")
        too_early = ("--from-dump", "--into", f"sqlite:///{tmp_path}/other.sqlite", "--to", last - 1)
        commands.refused("journal", "replay", "--from", files.url, *too_early)
        (commands.home / "storage" / "published.json").write_text('{"dumps": 5}')
        refused = commands.refused("journal", "replay", "--from", files.url, *too_early)
        assert unnamed(refused, "published.json") == []


def test_a_replay_that_ends_before_exact_answers_begin_names_where_they_begin(
    commands: Commands, two_visits: TwoVisits, tmp_path: Path
) -> None:
    commands.done("journal", "write")
    command = ("journal", "replay", "--into", f"sqlite:///{tmp_path}/replayed.sqlite", "--to", 1)
    exact_from = commands.json(*command)["exact_from"]
    assert exact_from > 1
    assert unnamed(commands.done(*command).stderr, "1", exact_from) == []
