"""Commands of `lookup` with additional options: files, breaks, collisions, confusion."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.tables import catalog_state
from pypi_assets.lookup.project_answers import LiveFileResult
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.test_impact import published  # noqa: F401 - a fixture
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex, served_index


def test_unanswerable_serial_error_names_the_answerable_serials(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.build_versions()
    serial = index.serial
    for refused in (serial - 1, serial + 1):
        assert unnamed(commands.refused("lookup", "files", "--at", refused), refused, serial) == []


def test_files_of_a_project_match_the_full_list(commands: Commands, index: ServedIndex) -> None:
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


WHERE = ("--python", "3.12", "--platform", "linux-x86_64")


def test_breaks_finds_excluding_projects_and_their_dependents(
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
    """Publish `over`, which needs an old release of `lib` that excludes base 2.0."""
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


def test_breaks_with_solve_finds_unsolvable_projects(led: Commands, index: ServedIndex) -> None:
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


def test_breaks_names_projects_not_resolved_in_time(led: Commands) -> None:
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


def test_breaks_with_solve_rejects_missing_version(led: Commands) -> None:
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
def test_invalid_argument_of_breaks_is_named(commands: Commands, arguments: list[str], named: list[str]) -> None:
    assert unnamed(commands.refused("lookup", "breaks", *arguments, exit_code=2), *named) == []


SHARED = {"shared/__init__.py": "", "shared/part.py": ""}


def test_collisions_now_and_at_a_serial(commands: Commands, index: ServedIndex, tmp_path: Path) -> None:
    index.wheel("one", "1.0", files=SHARED)
    index.wheel("two", "1.0", files=SHARED, requires_dist=["one"])
    commands.build_versions()
    serial = index.serial
    lock = tmp_path / "requirements.txt"
    lock.write_text("one==1.0\ntwo==1.0\ngone==1.0\n")
    done = commands.run("lookup", "collisions", lock, "--check")
    assert done.exit_code == 1
    assert done.stdout == "shared.part\tone 1.0, two 1.0\ttwo\n"
    assert unnamed(done.stderr, "gone==1.0") == []
    assert unnamed(done.stderr, "3", "2", serial) == []
    found = commands.json("lookup", "collisions", lock, "--python", "3.12", "--platform", "linux")
    assert found["shared_packages"] == [{"package": "shared", "projects": ["one", "two"]}]
    assert [one["kind"] for one in found["remarks"]] == ["unknown"]
    past = commands.json("lookup", "collisions", lock, "--at", serial)
    assert past.pop("epoch") <= serial
    assert past == {**found, "python": None, "platform": None}
    lock.write_text("one==1.0\n")
    done = commands.done("lookup", "collisions", lock, "--check")
    assert (done.stdout, bool(done.stderr)) == ("", True)


FIRST = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def indexes(commands: Commands, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Crawl a private and a public index. The private index is first in the file."""
    monkeypatch.delenv("PYPI_ASSETS_INDEX_URL")
    with served_index(tmp_path / "public") as public, served_index(tmp_path / "company") as company:
        path = tmp_path / "indexes.toml"
        path.write_text(
            f'[company]\nurl = "{company.url}"\nprivate = true\n[public]\nurl = "{public.url}"\ndefault = true\n'
        )
        monkeypatch.setenv("PYPI_ASSETS_INDEXES", str(path))
        company.wheel("acme-tools", "1.0", at=FIRST)
        company.wheel("pillow", "1.0", at=FIRST)
        company.wheel("zebra", "1.0", at=FIRST)
        public.wheel("zebra", "1.0", at=FIRST + timedelta(microseconds=1))
        public.wheel("acme_tools", "99.0", at=FIRST + timedelta(seconds=1))
        public.wheel("pi1low", "1.0", at=FIRST + timedelta(seconds=1))
        public.wheel("other", "1.0", at=FIRST + timedelta(seconds=1))
        for name in ("company", "public"):
            commands.done("crawl", "full", "--index", name)
        yield path


def test_confusion_shows_the_choice_of_each_installer(commands: Commands, indexes: Path) -> None:
    same, alike, tie = commands.json("lookup", "confusion")
    assert list(same) == ["kind", "names", "indexes", "pip", "pip_indexes", "uv", "uv_index"]
    fields = ["index", "private", "name", "normalized", "newest", "since_serial", "since", "first"]
    assert [list(one) for one in same["indexes"]] == [fields, fields]
    assert (same["kind"], same["names"], same["pip"], same["pip_indexes"], same["uv"], same["uv_index"]) == (
        "same",
        ["acme-tools"],
        "99.0",
        ["public"],
        "1.0",
        "company",
    )
    assert [(one["index"], one["private"], one["newest"], one["since"]) for one in same["indexes"]] == [
        ("company", True, "1.0", "2026-01-02T03:04:05Z"),
        ("public", False, "99.0", "2026-01-02T03:04:06Z"),
    ]
    assert all(one["since_serial"] > 0 for one in same["indexes"])
    assert [[one["first"] for one in found["indexes"]] for found in (same, alike, tie)] == [
        ["yes", "no"],
        ["yes", "no"],
        ["unknown", "unknown"],
    ]
    assert (alike["kind"], alike["names"], alike["pip"]) == ("alike", ["pi1low", "pillow"], None)
    rows = list(csv.DictReader(io.StringIO(commands.done("lookup", "confusion", "--csv", "--header").stdout)))
    assert [(row["kind"], row["name"], row["index"], row["first"], row["taken_by"]) for row in rows] == [
        ("same", "acme-tools", "company", "yes", '["uv"]'),
        ("same", "acme_tools", "public", "no", '["pip"]'),
        ("alike", "pillow", "company", "yes", ""),
        ("alike", "pi1low", "public", "no", ""),
        ("same", "zebra", "company", "unknown", '["pip", "uv"]'),
        ("same", "zebra", "public", "unknown", '["pip"]'),
    ]


def test_confusion_names_uncomparable_index_and_fails(commands: Commands, indexes: Path) -> None:
    indexes.write_text(indexes.read_text() + '[third]\nurl = "http://127.0.0.1:9/simple/"\nprivate = true\n')
    result = commands.run("lookup", "confusion")
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) == 6
    assert unnamed(result.stderr, "third") == []
    assert commands.run("lookup", "confusion", "--index", "third").stdout == ""


def test_confusion_ignores_index_followed_by_scopes(commands: Commands, indexes: Path) -> None:
    with closing(open_catalog(f"sqlite:///{commands.home}/catalog.sqlite")) as catalog, catalog.write() as connection:
        connection.execute(update(catalog_state).values(follows_all=False))
    result = commands.done("lookup", "confusion")
    assert result.stdout == ""
    assert unnamed(result.stderr, "public", "0") == []


def test_confusion_requires_several_indexes(commands: Commands) -> None:
    assert unnamed(commands.refused("lookup", "confusion", exit_code=2), "PYPI_ASSETS_INDEXES") == []
