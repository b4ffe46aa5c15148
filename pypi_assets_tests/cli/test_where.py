"""`pypi-assets admin where`: the partitions of a project, and the file of the newest full dump that has it."""

from pathlib import Path

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import TwoVisits


def test_partitions_follow_from_the_name_and_the_file_has_it(commands: Commands, two_visits: TwoVisits) -> None:
    crawled, dumped = commands.json("admin", "where", "Requests")
    assert (crawled["assets"], crawled["file"]) == ("crawled_projects, crawled_distribution_data", None)
    assert (dumped["assets"], dumped["partition"], dumped["file"]) == ("full_dump", "ec", None)
    assert [one["partition"] for one in commands.json("admin", "where", "requests")] == [crawled["partition"], "ec"]
    commands.done("dump", "full", "--shards", 16)
    file = commands.json("admin", "where", "demo")[1]["file"]
    assert Path(file.removeprefix("file://")).is_file()
    commands.done("dump", "redo")  # in as many files
    [again] = [one for one in commands.json("admin", "where", "demo") if one["file"]]
    assert again["file"].rpartition("/")[2] == file.rpartition("/")[2]
    assert again["file"] != file
