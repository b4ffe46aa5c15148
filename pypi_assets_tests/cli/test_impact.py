"""`pypi-assets impact`: what depends on a project or version, published and at a moment."""

import csv
import io
import json
from pathlib import Path

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.lookup.test_advisories import record, stored
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


def test_a_project_or_a_version_and_what_leads_there(published: Commands) -> None:
    assert rows(published, "base") == [(1, "mid"), (1, "old")]
    assert rows(published, "Base==2.0") == [(1, "mid")]
    assert rows(published, "base==2", "--transitive") == [(1, "mid"), (2, "top")]
    assert rows(published, "base==2", "--transitive", "--depth", "1") == [(1, "mid")]
    [mid, top] = published.json("impact", "base==2.0", "--transitive")
    assert (mid["condition"], mid["specifiers"], mid["version"]) == ("marker", [">=1"], "1.0")
    assert top["chain"] == ["mid", "base"]
    result = published.done("impact", "base==2.0", "--transitive")
    assert result.stdout.splitlines()[1] == "2\tmid\ttop\t1.0\talways\tmid\tmid, base"
    assert "2 projects: 1 at depth 1, 1 at depth 2; as of serial " in result.stderr
    [header, *_] = csv.reader(io.StringIO(published.done("impact", "base", "--csv", "--header").stdout))
    assert header == ["depth", "required", "project", "version", "condition", "requirements"]


def test_a_version_that_is_gone_is_answered_with_a_note(published: Commands) -> None:
    result = published.done("impact", "base==1.5")
    assert [line.split("\t")[2] for line in result.stdout.splitlines()] == ["mid", "old"]
    assert "base has no live release 1.5: the answer is what requirements make of it\n" in result.stderr
    assert "no live release" not in published.done("impact", "base==1").stderr


def test_what_is_not_there_has_one_answer(published: Commands) -> None:
    result = published.done("impact", "bsae==1.0")
    assert result.stdout == ""
    assert "the newest release of no project accepts bsae 1.0 as of serial " in result.stderr
    assert "no distribution of bsae is known\n" in result.stderr
    assert "base" in result.stderr  # as a hint
    assert "the newest release of no project requires top as of serial " in published.done("impact", "top").stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["base>=1"], "'base>=1' is neither a project's NAME nor NAME==VERSION"),
        (["base==latest"], "'latest' is no version of PEP 440"),
        (["base", "--depth", "2"], "--depth goes with --transitive"),
        (["base", "--at", "soon"], "'soon' is neither a serial nor a time"),
    ],
)
def test_wrong_usage_is_named(commands: Commands, arguments: list[str], message: str) -> None:
    assert message in commands.refused("impact", *arguments, exit_code=2)


def test_at_a_moment_it_is_what_was_there(published: Commands, index: ServedIndex) -> None:
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
    assert ", from the catalog" in published.done("impact", "base", "--at", before).stderr
    result = published.done("impact", "nope", "--at", before)
    assert "no distribution of nope is known" in result.stderr
    for moment, reason in ((before - 1, "there is no answer for serial"), ("1990-01-01", "is before the first")):
        assert reason in published.refused("impact", "base", "--at", moment)
    assert "is in the future" in published.refused("impact", "base", "--at", "2999-01-01")


def test_advisories_find_whose_newest_release_allows_what_is_affected(published: Commands, tmp_path: Path) -> None:
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
        assert "not used: BAD.json: it is no record of OSV: " in result.stderr
        assert (
            "2 advisories about 1 project, without 1 that are withdrawn, 1 of other ecosystems and 1 problem\n"
            "newest releases that allow an affected version as the newest one: 1, as of serial "
        ) in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give either PROJECT[==VERSION] or --osv"),
        (["base", "--osv", "."], "give either PROJECT[==VERSION] or --osv"),
        (["--osv", ".", "--transitive"], "--osv looks at direct requirements: without --transitive"),
        (["--osv", "none.zip"], "'none.zip' does not exist"),
    ],
)
def test_advisories_stand_in_for_a_project(commands: Commands, arguments: list[str], message: str) -> None:
    assert message in commands.refused("impact", *arguments, exit_code=2)


def test_what_is_no_file_of_advisories_is_one_message(commands: Commands, tmp_path: Path) -> None:
    (tmp_path / "all.zip").write_bytes(b"no zip")
    assert "is neither a folder nor a zip that can be read" in commands.refused("impact", "--osv", tmp_path / "all.zip")


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
    assert "affected versions in newest solutions: 2, as of serial " in result.stderr
    assert "6 projects: 5 with a solution, 1 without" in result.stderr
    late = published.json("impact", "--osv", osv, *where, "--total-seconds", "1e-9")
    assert len(late) == 5  # the first one is resolved
    assert all("were over" in row["undecided"] for row in late)
    text = published.refused("impact", "base", "--solve", exit_code=2)
    assert "--solve goes with --osv" in text
