"""Options shared by several commands: their values and meaning."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pypi_assets.catalog.reports.moments import InexactSerialError
from pypi_assets.cli import cli
from pypi_assets.cli.options import AT, catalog_at, row_output
from pypi_assets.terminal import Output, print_rows
from pypi_assets_tests.cli.commands import Commands, every_command
from pypi_assets_tests.cli.conftest import TwoVisits
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


def test_every_command_has_help_with_an_example(subtests: pytest.Subtests) -> None:
    for path, command in every_command():
        with subtests.test(path=" ".join(path)):
            result = CliRunner().invoke(cli, [*path, "--help"])
            assert result.exit_code == 0
            assert f"Example: pypi-assets {' '.join(path)}" in result.output
            assert command.help


def test_rows_are_printed_by_the_same_function() -> None:
    @click.command()
    @click.argument("name")
    @row_output
    def show(name: str, output: Output) -> None:
        print_rows(("name", "size"), [{"name": name, "size": 1}], output)

    def run(*options: str) -> str:
        result = CliRunner().invoke(show, ["=a", *options])
        assert result.exit_code == 0
        return result.stdout_bytes.decode()

    assert run() == "=a\t1\n"
    assert run("--header") == "name\tsize\n=a\t1\n"
    assert run("--csv", "--header") == '"name","size"\r\n"\'=a",1\r\n'
    assert run("--json") == '[\n{"name": "=a", "size": 1}\n]\n'
    for other in ("--csv", "--header"):
        result = CliRunner().invoke(show, ["a", "--json", other])
        assert result.exit_code == 2
        assert [name for name in ("--json", other) if name not in result.stderr] == []


@click.command()
@AT
def show(at: object) -> None:
    """Print the value of the option."""
    click.echo(repr(at))


def test_at_accepts_serials_and_times():
    for given, expected in (
        ((), None),
        (("--at", "12"), 12),
        (("--at", "2026-03-03"), datetime(2026, 3, 3, tzinfo=UTC)),
    ):
        assert CliRunner().invoke(show, given).stdout == f"{expected!r}\n"


@pytest.mark.parametrize("wrong", ["", "soon", "-1", "2026-02-30"])
def test_at_rejects_other_values(wrong: str):
    result = CliRunner().invoke(show, ["--at", wrong])
    assert result.exit_code == 2
    assert unnamed(result.stderr, "1350", "UTC", "2026-03-03") == []


def test_catalog_answers_only_at_exact_serials(commands: Commands, two_visits: TwoVisits):
    for at, expected in ((None, two_visits.serial), (two_visits.baseline, two_visits.baseline)):
        with catalog_at(at) as (_, serial):
            assert serial == expected
    with pytest.raises(InexactSerialError), catalog_at(two_visits.serial + 1):
        pass


def test_dates_and_serials_give_the_same_answers(commands: Commands, index: ServedIndex, tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("options", "named", "exit_code"),
    [
        (("--python", "4"), ["'4'", "3.12"], 2),
        (("--platform", "solaris"), ["'solaris'", "linux", "macos", "windows"], 2),
        (("--at", "-1"), ["-1"], 2),
        ((), ["r.txt"], 1),
    ],
)
def test_invalid_lock_or_environment_is_rejected(
    commands: Commands, tmp_path: Path, options: tuple[str, ...], named: list[str], exit_code: int
) -> None:
    (tmp_path / "r.txt").write_text("six\n")
    for command in (("lookup", "collisions", tmp_path / "r.txt"), ("export", "gazelle", "--lock", tmp_path / "r.txt")):
        assert unnamed(commands.refused(*command, *options, exit_code=exit_code), *named) == []


def test_missing_lock_is_a_usage_error(commands: Commands) -> None:
    assert "none.txt" in commands.refused("lookup", "collisions", "none.txt", exit_code=2)
