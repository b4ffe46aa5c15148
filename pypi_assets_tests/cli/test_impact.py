"""`pypi-assets impact`: the dependents of a project or version, in the newest version and at a moment."""

import csv
import io
import json
from pathlib import Path

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.lookup.test_advisories import record, stored
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


@pytest.fixture
def published(commands: Commands, index: ServedIndex) -> Commands:
    index.wheel("base", "1.0")
    index.wheel("base", "2.0")
    index.wheel("Mid", "1.0", requires_dist=["Base>=1; os_name == 'nt'"])
    index.wheel("old", "1.0", requires_dist=["base<2"])
    index.wheel("top", "1.0", requires_dist=["mid"])
    commands.build_versions()
    return commands


def rows(commands: Commands, *arguments: object) -> list[tuple[int, str]]:
    return [(row["depth"], row["normalized"]) for row in commands.json("impact", *arguments)]


def test_impact_of_a_project_or_version(published: Commands) -> None:
    assert rows(published, "base") == [(1, "mid"), (1, "old")]
    assert rows(published, "Base==2.0") == [(1, "mid")]
    assert rows(published, "base==2", "--transitive") == [(1, "mid"), (2, "top")]
    assert rows(published, "base==2", "--transitive", "--depth", "1") == [(1, "mid")]
    [mid, top] = published.json("impact", "base==2.0", "--transitive")
    assert (mid["condition"], mid["specifiers"], mid["version"]) == ("marker", [">=1"], "1.0")
    assert top["chain"] == ["mid", "base"]
    result = published.done("impact", "base==2.0", "--transitive")
    assert result.stdout.splitlines()[1] == "2\tmid\ttop\t1.0\talways\tmid\tmid, base"
    assert unnamed(result.stderr, "2", "1") == []
    [header, *_] = csv.reader(io.StringIO(published.done("impact", "base", "--csv", "--header").stdout))
    assert header == ["depth", "required", "project", "version", "condition", "requirements"]


def test_removed_version_is_answered_with_a_note(published: Commands) -> None:
    result = published.done("impact", "base==1.5")
    assert [line.split("\t")[2] for line in result.stdout.splitlines()] == ["mid", "old"]
    assert unnamed(result.stderr, "base", "1.5") == []
    assert len(published.done("impact", "base==1").stderr.splitlines()) < len(result.stderr.splitlines())


def test_unknown_project_has_an_empty_answer_with_a_note(published: Commands) -> None:
    result = published.done("impact", "bsae==1.0")
    assert result.stdout == ""
    assert unnamed(result.stderr, "bsae", "1.0") == []
    assert unnamed(result.stderr, "bsae") == []
    assert "base" in result.stderr  # as a hint
    assert published.done("impact", "top").stderr


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["base>=1"], ["'base>=1'", "NAME==VERSION"]),
        (["base==latest"], ["'latest'"]),
        (["base", "--depth", "2"], ["--depth", "transitive"]),
        (["base", "--at", "soon"], ["'soon'"]),
    ],
)
def test_invalid_argument_of_impact_is_named(commands: Commands, arguments: list[str], named: list[str]) -> None:
    assert unnamed(commands.refused("impact", *arguments, exit_code=2), *named) == []


def test_impact_at_an_earlier_serial(published: Commands, index: ServedIndex) -> None:
    before = index.serial
    latest = published.json("impact", "base==1.0", "--transitive")
    index.wheel("Mid", "2.0", requires_dist=["base>=2"])
    index.wheel("new", "1.0", requires_dist=["base", "new"])
    published.done("crawl", "incremental")
    past = published.json("impact", "base==1.0", "--transitive", "--at", before)
    assert [row.pop("epoch") >= before for row in past] == [True] * 3
    assert past == latest
    now = published.json("impact", "base==1.0", "--transitive", "--at", index.serial)
    assert [(row["depth"], row["normalized"]) for row in now] == [(1, "new"), (1, "old")]
    assert published.done("impact", "base", "--at", before).stderr
    result = published.done("impact", "nope", "--at", before)
    assert unnamed(result.stderr, "nope") == []
    for moment in (before - 1, "1990-01-01"):
        assert str(moment) in published.refused("impact", "base", "--at", moment)
    published.refused("impact", "base", "--at", "2999-01-01")


def test_advisories_find_releases_that_allow_affected_versions(published: Commands, tmp_path: Path) -> None:
    folder = stored(
        tmp_path / "osv",
        GHSA=record("Base", events=[{"introduced": "0"}, {"fixed": "2.0"}]),
        OTHER=record("base", versions=["1.0"]),
        GONE=record("base", versions=["2.0"], withdrawn="2026-01-02T00:00:00Z"),
        ELSE=record("base", versions=["2.0"], ecosystem="npm"),
        BAD=b"{",
    )
    for at in ((), ("--at", str(published.json("status")["complete_serial"]))):
        result = published.run("impact", "--osv", folder, "--json", *at)
        [old] = json.loads(result.stdout)
        assert (old["normalized"], old["required"], old["allowed"]) == ("old", "base", "1.0")
        assert (old["advisories"], old["requirements"]) == (["GHSA", "OTHER"], ["base<2"])
        assert unnamed(result.stderr, "BAD.json", "OSV") == []
        assert unnamed(result.stderr, "2", "1") == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], ["PROJECT[==VERSION]", "--osv"]),
        (["base", "--osv", "."], ["PROJECT[==VERSION]", "--osv"]),
        (["--osv", ".", "--transitive"], ["--osv", "--transitive"]),
        (["--osv", "none.zip"], ["'none.zip'"]),
    ],
)
def test_advisories_replace_the_project_argument(commands: Commands, arguments: list[str], named: list[str]) -> None:
    assert unnamed(commands.refused("impact", *arguments, exit_code=2), *named) == []


def test_invalid_file_of_advisories_is_one_message(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "all.zip").write_bytes(b"no zip")
    commands.refused("impact", "--osv", tmp_path / "all.zip")


def test_advisories_and_newest_solutions(published: Commands, index: ServedIndex, tmp_path: Path) -> None:
    where = ("--solve", "--unknown", "assume-none", "--python", "3.12", "--platform", "linux-x86_64")
    index.wheel("over", "1.0", requires_dist=["old"])
    index.wheel("lost", "1.0", requires_dist=["old", "never-uploaded"])
    for name in ("crawl incremental", "dump incremental", "leveldb update"):
        published.done(*name.split())
    osv = stored(tmp_path / "osv", one=record("base", versions=["1.0"]))
    found = published.json("impact", "--osv", osv, *where)
    assert [(row["normalized"], row["chosen"], row["required"], row["version"]) for row in found] == [
        ("old", "1.0", "base", "1.0"),
        ("over", "1.0", "base", "1.0"),
    ]
    past = published.json("impact", "--osv", osv, *where, "--at", index.serial)
    assert [{**row, "epoch": 0} for row in past] == [{**row, "epoch": 0} for row in found]
    result = published.done("impact", "--osv", osv, *where)
    assert unnamed(result.stderr, "2") == []
    assert unnamed(result.stderr, "6", "5", "1") == []
    late = published.json("impact", "--osv", osv, *where, "--total-seconds", "1e-9")
    assert len(late) == 5  # the first one is resolved in time
    assert all("1e-09" in row["undecided"] for row in late)
    text = published.refused("impact", "base", "--solve", exit_code=2)
    assert unnamed(text, "--solve", "--osv") == []
