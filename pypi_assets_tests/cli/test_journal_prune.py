"""`pypi-assets journal prune`: old segments go once a full dump makes up for them."""

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import TwoVisits
from pypi_assets_tests.named import unnamed


def test_old_segments_are_pruned(commands: Commands, two_visits: TwoVisits) -> None:
    commands.done("journal", "write")
    commands.refused("journal", "prune", "--before", two_visits.baseline)
    assert "--before" in commands.refused("journal", "prune", "--before", "someday", exit_code=2)
    commands.done("dump", "full", "--shards", "1")
    would = commands.json("journal", "prune", "--before", two_visits.baseline, "--dry-run")
    assert commands.json("journal", "prune", "--before", two_visits.baseline) == would
    assert [(one["stream"], one["segments"]) for one in would] == [("index", 0), ("observed", 1), ("content", 1)]
    printed = commands.done("journal", "prune", "--before", two_visits.baseline).stderr
    assert unnamed(printed, "observed", "0", f"{two_visits.baseline:,}") == []
    commands.refused("journal", "tail", "--since", 0)
