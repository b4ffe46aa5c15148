"""Each command has help with an example."""

import click
import pytest
from click.testing import CliRunner

from pypi_assets.cli import cli
from pypi_assets.cli.options import row_output
from pypi_assets.terminal import Output, print_rows
from pypi_assets_tests.cli.commands import every_command


def test_every_command_has_help_with_an_example(subtests: pytest.Subtests) -> None:
    for path, command in every_command():
        with subtests.test(path=" ".join(path)):
            result = CliRunner().invoke(cli, [*path, "--help"])
            assert result.exit_code == 0
            assert f"Example: pypi-assets {' '.join(path)}" in result.output
            assert command.help


def test_rows_are_printed_in_one_way() -> None:
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
