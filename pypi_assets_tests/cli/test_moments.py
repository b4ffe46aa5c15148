"""`--at` takes a serial or a time, and leads to the exact serial of the catalog."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pypi_assets.catalog.reports.moments import NotExactError
from pypi_assets.cli.options import AT, catalog_at
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import TwoVisits
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


@click.command()
@AT
def show(at: object) -> None:
    """Prints what the option gives."""
    click.echo(repr(at))


def test_the_option_takes_serials_and_times():
    for given, expected in (
        ((), None),
        (("--at", "12"), 12),
        (("--at", "2026-03-03"), datetime(2026, 3, 3, tzinfo=UTC)),
    ):
        assert CliRunner().invoke(show, given).stdout == f"{expected!r}\n"


@pytest.mark.parametrize("wrong", ["", "soon", "-1", "2026-02-30"])
def test_anything_else_is_wrong_usage(wrong: str):
    result = CliRunner().invoke(show, ["--at", wrong])
    assert result.exit_code == 2
    assert unnamed(result.stderr, "1350", "UTC", "2026-03-03") == []


def test_the_catalog_answers_at_exact_serials_alone(commands: Commands, two_visits: TwoVisits):
    for at, expected in ((None, two_visits.serial), (two_visits.baseline, two_visits.baseline)):
        with catalog_at(at) as (_, serial):
            assert serial == expected
    with pytest.raises(NotExactError), catalog_at(two_visits.serial + 1):
        pass


def test_every_command_about_the_past_takes_a_date_as_it_takes_its_serial(
    commands: Commands, index: ServedIndex, tmp_path: Path
) -> None:
    day = datetime(2026, 3, 1, 12, tzinfo=UTC)
    index.wheel("older", "1.0", at=day - timedelta(days=1))
    commands.build_versions()
    index.wheel("demo", "1.0", files={"demo_module/__init__.py": ""}, requires_dist=["older"], at=day)
    lock = tmp_path / "requirements.txt"
    lock.write_text("demo==1.0\n")
    commands.done("crawl", "incremental")
    serial = index.serial
    index.wheel("demo", "2.0", files={"demo_module/__init__.py": ""}, at=day + timedelta(days=2))
    commands.done("crawl", "incremental")
    asked = [
        ("lookup", "files"),
        ("lookup", "module", "demo_module"),
        ("lookup", "project", "demo"),
        ("lookup", "dependents", "older"),
        ("lookup", "page", "demo"),
        ("owners", "demo_module"),
        ("lookup", "collisions", lock),
        ("impact", "older"),
    ]
    for question in asked:
        at_serial = commands.done(*question, "--json", "--at", serial).stdout
        for moment in ("2026-03-02", "2026-03-03T11:59:59Z"):
            assert commands.done(*question, "--json", "--at", moment).stdout == at_serial, (question, moment)
        assert "2026-02-30" in commands.refused(*question, "--at", "2026-02-30", exit_code=2)
    exported = commands.done("export", "gazelle", "--lock", lock, "--at", serial).stdout
    assert commands.done("export", "gazelle", "--lock", lock, "--at", "2026-03-02").stdout == exported
