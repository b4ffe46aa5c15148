"""`pypi-assets lookup files`: the live files of a project and of all, and serials that it cannot answer for."""

from pypi_assets.lookup.live_files import LiveFileResult
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


def test_a_serial_without_an_answer_is_refused_with_those_that_have_one(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.build_versions()
    serial = index.serial
    for refused in (serial - 1, serial + 1):
        assert unnamed(commands.refused("lookup", "files", "--at", refused), refused, serial) == []


def test_the_files_of_a_project_are_those_of_the_list(commands: Commands, index: ServedIndex) -> None:
    index.wheel("Demo.Pkg", "1.0")
    index.wheel("Demo.Pkg", "2.0")
    index.wheel("other", "1.0")
    commands.build_versions()
    first = index.serial
    index.history.yank("Demo.Pkg", "1.0")
    commands.done("crawl", "incremental")
    for at, yanked in ((first, [False, False]), (index.serial, [True, False])):
        listed = commands.json("lookup", "files", "--at", at)
        found = commands.json("lookup", "files", "demo-pkg", "--at", at)
        assert [one["yanked"] for one in found] == yanked
        assert found == [{**one, "epoch": at} for one in listed if one["project"] == "Demo.Pkg"]
    assert commands.json("lookup", "files", "demo-pkg") == found
    assert [list(one) for one in found] == [[*LiveFileResult.__annotations__, "epoch"]] * 2
    newest = commands.done("lookup", "files")
    assert len(newest.stdout.splitlines()) == 3
    assert unnamed(newest.stderr, index.serial) == []
    for project in ((), ("demo-pkg",)):
        assert len(commands.json("lookup", "files", *project, "--limit", 1)) == 1
