"""Run commands of `pypi-assets` in the environment of a test."""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner, Result

from pypi_assets.cli import cli

PROCESS = [sys.executable, "-W", "error", "-c", "from pypi_assets.cli import main; main()"]


@dataclass(frozen=True)
class Commands:
    """Commands that run in the environment of the test. They must not end in a traceback."""

    home: Path

    def run(self, *arguments: object) -> Result:
        result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def done(self, *arguments: object) -> Result:
        result = self.run(*arguments)
        assert result.exit_code == 0, result.output
        return result

    def json(self, *arguments: object) -> Any:
        return json.loads(self.done(*arguments, "--json").stdout)

    def refused(self, *arguments: object, exit_code: int = 1) -> str:
        """Run a command that fails, and return its only message."""
        result = self.run(*arguments)
        assert result.exit_code == exit_code, result.output
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        return result.stderr

    def build_versions(self) -> None:
        """Run the first crawl of the index, dump it, and build the first LevelDB versions."""
        self.done("crawl", "full")
        self.done("dump", "full", "--shards", "1")
        self.done("leveldb", "update")


def commands_in(text: str) -> list[str]:
    """Return the commands that a message names, without `pypi-assets`, in their order."""
    return re.findall(r"`pypi-assets ([^`]+)`", " ".join(text.split()))


def every_command(
    group: click.Group = cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from every_command(command, (*path, name))
        else:
            yield (*path, name), command
