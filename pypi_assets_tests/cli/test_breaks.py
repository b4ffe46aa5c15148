"""`pypi-assets lookup breaks`: whose requirements exclude a version, and what requires these."""

import json
from collections import Counter

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.test_impact import published  # noqa: F401 - a fixture
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex

WHERE = ("--python", "3.12", "--platform", "linux-x86_64")


def test_what_excludes_a_version_and_what_requires_that(
    published: Commands,  # noqa: F811
    index: ServedIndex,
) -> None:
    index.wheel("over", "1.0", requires_dist=["old; extra == 'x'"])
    for name in ("crawl incremental", "dump incremental", "leveldb update"):
        published.done(*name.split())
    [old] = published.json("lookup", "breaks", "base==2.0")
    assert (old["normalized"], old["reason"], old["requirements"], old["proof"]) == (
        "old",
        "excludes",
        ["base<2"],
        None,
    )
    found = published.json("lookup", "breaks", "base==2.0", "--transitive")
    assert [(row["normalized"], row["reason"], row["condition"]) for row in found] == [
        ("old", "excludes", "always"),
        ("over", "requires", "extra"),
    ]
    past = published.json("lookup", "breaks", "base==2.0", "--transitive", "--at", index.serial)
    assert [{**row, "epoch": 0} for row in found] == [{**row, "epoch": 0} for row in past]
    result = published.done("lookup", "breaks", "base==2.0", "--transitive")
    assert result.stdout.splitlines()[1].split("\t")[:4] == ["requires", "2", "old", "over"]
    assert unnamed(result.stderr, "2", "1") == []
    assert unnamed(published.done("lookup", "breaks", "base==1.0").stderr, "base", "1.0") == []
    assert unnamed(published.done("lookup", "breaks", "base==3.0").stderr, "base", "3.0") == []


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
    found = led.json("lookup", "breaks", "base==2.0", "--transitive", "--solve", *WHERE)
    assert [(row["depth"], row["normalized"], row["reason"], row["chain"], row["older"]) for row in found] == [
        (1, "dark", "undecided", ["base"], None),
        (1, "old", "excludes", ["base"], None),
        (2, "lost", "broken", ["lib", "base"], None),
        (2, "over", "unsolvable", ["lib", "base"], "0.9"),
    ]
    over = found[-1]
    assert "lib" in over["proof"]
    assert unnamed(over["proof"], "lib<2", "base<2", "base==2.0") == []
    assert [row["normalized"] for row in led.json("lookup", "breaks", "base==2.0", "--solve", *WHERE)] == [
        "dark",
        "old",
    ]
    past = led.json("lookup", "breaks", "base==2.0", "--transitive", "--solve", "--at", index.serial, *WHERE)
    assert [{**row, "epoch": 0} for row in past] == [{**row, "epoch": 0} for row in found]
    result = led.done("lookup", "breaks", "base==2.0", "--transitive", "--solve", "--unknown", "assume-none", *WHERE)
    assert len(result.stdout.splitlines()) == 3
    assert unnamed(result.stderr, "3.12", "linux-x86_64", "6", "4", "1") == []
    result = led.done("lookup", "breaks", "base==1.0", "--solve", "--unknown", "assume-none", *WHERE)
    assert unnamed(result.stderr, "base", "1.0") == []


def test_what_is_not_resolved_in_time_is_named(led: Commands) -> None:
    result = led.done(
        "lookup", "breaks", "base==2.0", "--transitive", "--solve", "--total-seconds", "1e-9", "--json", *WHERE
    )
    found = json.loads(result.stdout)
    assert Counter(row["reason"] for row in found) == {"undecided": 6, "excludes": 1}
    assert unnamed(found[-1]["proof"], "1e-09") == []
    assert unnamed(result.stderr, "5", "--total-seconds") == []
    found = led.json("lookup", "breaks", "base==2.0", "--transitive", "--solve", "--project-seconds", "1e-9", *WHERE)
    assert {row["reason"] for row in found} == {"undecided", "excludes"}
    assert unnamed(found[-1]["proof"], "1e-09") == []


def test_nothing_is_solved_with_a_version_that_is_not_there(led: Commands) -> None:
    text = led.refused("lookup", "breaks", "base==3.0", "--solve", *WHERE)
    assert unnamed(text, "base", "3.0") == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["base==1", "--python", "3.12"], ["--python", "--solve"]),
        (["base==1", "--total-seconds", "9"], ["--total-seconds", "--solve"]),
        (["base==1", "--solve", "--total-seconds", "0"], ["'--total-seconds'"]),
        (["base==1", "--solve", "--python", "2.7"], ["'2.7'"]),
        (["base"], ["'base'", "PROJECT==VERSION"]),
        (["base==x"], ["'x'"]),
        (["base==1", "--depth", "1"], ["--depth", "transitive"]),
    ],
)
def test_wrong_usage_is_named(commands: Commands, arguments: list[str], named: list[str]) -> None:
    assert unnamed(commands.refused("lookup", "breaks", *arguments, exit_code=2), *named) == []
