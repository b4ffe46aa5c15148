"""`pypi-assets breaks`: whose requirements exclude a version, and what requires these."""

import json
from collections import Counter

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.test_impact import published  # noqa: F401 - a fixture
from pypi_assets_tests.served_index import ServedIndex

WHERE = ("--python", "3.12", "--platform", "linux-x86_64")


def test_what_excludes_a_version_and_what_requires_that(
    published: Commands,  # noqa: F811
    index: ServedIndex,
) -> None:
    index.wheel("over", "1.0", requires_dist=["old; extra == 'x'"])
    for name in ("crawl incremental", "dump incremental", "leveldb update"):
        published.done(*name.split())
    [old] = published.json("breaks", "base==2.0")
    assert (old["normalized"], old["reason"], old["requirements"], old["proof"]) == (
        "old",
        "excludes",
        ["base<2"],
        None,
    )
    found = published.json("breaks", "base==2.0", "--transitive")
    assert [(row["normalized"], row["reason"], row["condition"]) for row in found] == [
        ("old", "excludes", "always"),
        ("over", "requires", "extra"),
    ]
    past = published.json("breaks", "base==2.0", "--transitive", "--at", index.serial)
    assert [{**row, "epoch": 0} for row in found] == [{**row, "epoch": 0} for row in past]
    result = published.done("breaks", "base==2.0", "--transitive")
    assert result.stdout.splitlines()[1].split("\t")[:4] == ["requires", "2", "old", "over"]
    assert "2 projects: 1 at depth 1, 1 at depth 2; as of serial " in result.stderr
    assert (
        "the newest release of no project excludes base 1.0 as of serial"
        in published.done("breaks", "base==1.0").stderr
    )
    assert "base has no live release 3.0" in published.done("breaks", "base==3.0").stderr


@pytest.fixture
def led(published: Commands, index: ServedIndex) -> Commands:  # noqa: F811
    """`over` needs an old release of `lib`, and that excludes base 2.0."""
    index.wheel("lib", "1.0", requires_dist=["base<2"])
    index.wheel("lib", "2.0", requires_dist=["base"])
    index.wheel("over", "0.9")
    index.wheel("over", "1.0", requires_dist=["lib<2"])
    index.wheel("lost", "1.0", requires_dist=["lib", "never-uploaded"])
    index.sdist("source", "1.0")
    index.wheel("dark", "1.0", requires_dist=["base", "source"])
    for name in ("crawl incremental", "dump incremental", "leveldb update"):
        published.done(*name.split())
    return published


def test_what_has_no_solution_with_a_version(led: Commands, index: ServedIndex) -> None:
    found = led.json("breaks", "base==2.0", "--transitive", "--solve", *WHERE)
    assert [(row["depth"], row["normalized"], row["reason"], row["chain"], row["older"]) for row in found] == [
        (1, "dark", "undecided", ["base"], None),
        (1, "old", "excludes", ["base"], None),
        (2, "lost", "broken", ["lib", "base"], None),
        (2, "over", "unsolvable", ["lib", "base"], "0.9"),
    ]
    over = found[-1]
    assert "lib" in over["proof"]
    assert "lib<2 requires base<2 and a constraint is base==2.0" in over["proof"]
    assert [row["normalized"] for row in led.json("breaks", "base==2.0", "--solve", *WHERE)] == ["dark", "old"]
    past = led.json("breaks", "base==2.0", "--transitive", "--solve", "--at", index.serial, *WHERE)
    assert [{**row, "epoch": 0} for row in past] == [{**row, "epoch": 0} for row in found]
    result = led.done("breaks", "base==2.0", "--transitive", "--solve", "--unknown", "assume-none", *WHERE)
    assert len(result.stdout.splitlines()) == 3
    counted = "6 projects: 4 with a solution, 1 without, 1 without one in any case\n"
    assert f"resolved for CPython 3.12 on linux-x86_64, as pip resolves: {counted}" in result.stderr
    result = led.done("breaks", "base==1.0", "--solve", "--unknown", "assume-none", *WHERE)
    assert "excludes base 1.0, and none lacks a solution with it as of serial " in result.stderr


def test_what_is_not_resolved_in_time_is_named(led: Commands) -> None:
    result = led.done("breaks", "base==2.0", "--transitive", "--solve", "--total-seconds", "1e-9", "--json", *WHERE)
    found = json.loads(result.stdout)
    assert Counter(row["reason"] for row in found) == {"undecided": 6, "excludes": 1}
    assert "not resolved: the 1e-09 s for all projects were over" in found[-1]["proof"]
    assert "5 of these were left out: allow more with --total-seconds" in result.stderr
    found = led.json("breaks", "base==2.0", "--transitive", "--solve", "--project-seconds", "1e-9", *WHERE)
    assert {row["reason"] for row in found} == {"undecided", "excludes"}
    assert "the resolution was ended after 1e-09 s" in found[-1]["proof"]


def test_nothing_is_solved_with_a_version_that_is_not_there(led: Commands) -> None:
    text = led.refused("breaks", "base==3.0", "--solve", *WHERE)
    assert "base has no live release 3.0, so nothing can be solved with it" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["base==1", "--python", "3.12"], "--python goes with --solve"),
        (["base==1", "--total-seconds", "9"], "--total-seconds goes with --solve"),
        (["base==1", "--solve", "--total-seconds", "0"], "'--total-seconds'"),
        (["base==1", "--solve", "--python", "2.7"], "'2.7' is no version of Python"),
        (["base"], "'base' has no version: give PROJECT==VERSION"),
        (["base==x"], "'x' is no version of PEP 440"),
        (["base==1", "--depth", "1"], "--depth goes with --transitive"),
    ],
)
def test_wrong_usage_is_named(commands: Commands, arguments: list[str], message: str) -> None:
    assert message in commands.refused("breaks", *arguments, exit_code=2)
