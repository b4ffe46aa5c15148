"""Each command has help with an example."""

import click
import pytest
from click.testing import CliRunner

from pypi_assets.cli import cli
from pypi_assets_tests.cli.commands import every_command


@pytest.mark.parametrize(("path", "command"), [(" ".join(path), command) for path, command in every_command()])
def test_every_command_has_help_with_an_example(path: str, command: click.Command) -> None:
    result = CliRunner().invoke(cli, [*path.split(), "--help"])
    assert result.exit_code == 0
    assert f"Example: pypi-assets {path}" in result.output
    assert command.help
