"""`--at` takes a serial or a time, and leads to the exact serial of the catalog."""

from datetime import UTC, datetime

import click
import pytest
from click.testing import CliRunner

from pypi_assets.catalog.reports.answerable_serials import NotExactError
from pypi_assets.cli.moments import AT, catalog_at
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import TwoVisits
from pypi_assets_tests.named import unnamed


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
