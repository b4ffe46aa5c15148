"""`pypi-assets breaks`: whose requirements exclude a version, and what requires these."""

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.test_impact import published  # noqa: F401 - a fixture
from pypi_assets_tests.served_index import ServedIndex


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["base"], "'base' has no version: give PROJECT==VERSION"),
        (["base==x"], "'x' is no version of PEP 440"),
        (["base==1", "--depth", "1"], "--depth goes with --transitive"),
    ],
)
def test_wrong_usage_is_named(commands: Commands, arguments: list[str], message: str) -> None:
    assert message in commands.refused("breaks", *arguments, exit_code=2)
