"""Looks up commands: which projects install one, and in which versions."""

from typing import TypedDict

from pypi_assets.lookup.answers import Answer, Stream
from pypi_assets.lookup.hints import command_hints
from pypi_assets.lookup.lookup_command import LookupCommand, PrefixLookup
from pypi_assets.lookup.newest import newest_providers
from pypi_assets.lookup.providers import NamesReader, Provider, all_providers, providers
from pypi_assets.lookup.reader import require_text


class CommandResult(TypedDict):
    """A project that installs a command as a console script, and the `versions` that do, in PEP 440's order."""

    command: str
    project: str
    normalized: str
    versions: list[str]


class CommandsReader(NamesReader):
    """Answers from `commands`."""

    dataset = "commands"

    def command(self, name: str) -> Answer[CommandResult]:
        """The projects that install the command, by normalized name."""
        require_text("command", name)
        return self._answer(CommandResult, lambda db: map(_result, providers(db, name)))

    def commands(self, prefix: str = "") -> Stream[CommandResult]:
        """All commands whose name begins with `prefix`, by name, and of each the projects that install it."""
        require_text("commands", prefix)
        return self._stream(CommandResult, lambda db: map(_result, all_providers(db, prefix)))


def _result(provider: Provider) -> CommandResult:
    return CommandResult(
        command=provider.name,
        project=provider.project,
        normalized=provider.normalized,
        versions=provider.versions,
    )


READER = CommandsReader
COMMANDS = (
    LookupCommand(
        name="command",
        argument="NAME",
        example="http",
        help="Which projects install the command NAME. Lists the versions that install it as a console script.",
        columns=("project", "versions"),
        answer=CommandsReader.command,
        nothing_found=lambda name: f"no project installs the command {name}",
        hints=command_hints,
        latest=newest_providers,
        latest_help="Of each project, only the newest version that installs NAME; its own newest may not.",
        prefix=PrefixLookup(
            columns=("command", "project", "versions"),
            stream=CommandsReader.commands,
            nothing_found=lambda prefix: f"no command begins with {prefix}",
        ),
    ),
)
