"""`pypi-assets journal`: what is crawled is written once, and a stream can be begun again."""

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import TwoVisits
from pypi_assets_tests.named import unnamed


def test_each_range_is_written_once(commands: Commands, two_visits: TwoVisits) -> None:
    written = commands.json("journal", "write")
    assert [one["range"] for one in written] == [
        f"0-{two_visits.baseline}",
        f"{two_visits.baseline}-{two_visits.serial}",
    ]
    assert all(one["records"]["observed"] for one in written)
    assert commands.json("journal", "write") == []
    assert commands.done("journal", "write").stderr


def test_a_stream_is_begun_again(commands: Commands, two_visits: TwoVisits) -> None:
    commands.done("journal", "write")
    assert unnamed(commands.done("journal", "restart", "observed").stderr, "2", "observed") == []
    again = commands.json("journal", "write")
    assert [one["range"] for one in again] == [f"{two_visits.baseline}-{two_visits.serial}"]


@pytest.mark.usefixtures("index")
def test_before_a_crawl_the_error_names_what_to_do(commands: Commands) -> None:
    assert unnamed(commands.refused("journal", "write"), "crawl full") == []
