"""`confusion` prints which names several indexes have, and what pip and uv take."""

import csv
import io
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import update

from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.tables import catalog_state
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import served_index

FIRST = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def indexes(commands: Commands, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A private index and a public one, both crawled; the private one is first in the file."""
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


def test_names_are_shown_with_what_each_installer_takes(commands: Commands, indexes: Path) -> None:
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


def test_what_cannot_be_compared_is_named_and_fails_the_command(commands: Commands, indexes: Path) -> None:
    indexes.write_text(indexes.read_text() + '[third]\nurl = "http://127.0.0.1:9/simple/"\nprivate = true\n')
    result = commands.run("lookup", "confusion")
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) == 6
    assert unnamed(result.stderr, "third") == []
    assert commands.run("lookup", "confusion", "--index", "third").stdout == ""


def test_what_is_not_followed_is_not_compared(commands: Commands, indexes: Path) -> None:
    with closing(open_catalog(f"sqlite:///{commands.home}/catalog.sqlite")) as catalog, catalog.write() as connection:
        connection.execute(update(catalog_state).values(follows_all=False))
    result = commands.done("lookup", "confusion")
    assert result.stdout == ""
    assert unnamed(result.stderr, "public", "0") == []


def test_it_needs_several_indexes(commands: Commands) -> None:
    assert unnamed(commands.refused("lookup", "confusion", exit_code=2), "PYPI_ASSETS_INDEXES") == []
