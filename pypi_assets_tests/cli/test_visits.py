"""`pypi-assets admin visits`: the visits of one project's page, and how two of them differ."""

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import TwoVisits
from pypi_assets_tests.named import unnamed


def test_visits_are_listed_and_compared(commands: Commands, two_visits: TwoVisits) -> None:
    visits = commands.json("admin", "visits", "demo")
    assert [(one["visit"], one["outcome"], one["files"]) for one in visits] == [(1, "full", 1), (2, "full", 2)]
    assert commands.done("admin", "visits", "demo").stdout.startswith(
        f"1\tcrawl:1\t1\t{visits[0]['started_at']}\tfull\t"
    )
    differences = commands.json("admin", "visits", "demo", "--compare", 1, 2)
    assert [(one["filename"], one["change"]) for one in differences] == [
        (two_visits.first_file, "yanked"),
        (two_visits.second_file, "came"),
    ]
    message = commands.refused("admin", "visits", "demo", "--compare", 1, 7)
    assert unnamed(message, "demo", "7", "pypi-assets admin visits demo") == []
