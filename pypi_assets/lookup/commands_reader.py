"""Look up commands: which projects install a command, and in which versions."""

from typing import TypedDict

from pypi_assets.lookup.answers import Answer, Stream
from pypi_assets.lookup.providers import NamesReader, Provider, all_providers, providers
from pypi_assets.lookup.reader import require_text


class CommandResult(TypedDict):
    """A project that installs a command as a console script.

    `versions` are the versions that install the command, in PEP 440 order.
    """

    command: str
    project: str
    normalized: str
    versions: list[str]


class CommandsReader(NamesReader):
    """A reader of the dataset `commands`."""

    dataset = "commands"

    def command(self, name: str) -> Answer[CommandResult]:
        """Return the projects that install the command, by normalized name."""
        require_text("command", name)
        return self._answer(CommandResult, lambda db: map(_result, providers(db, name)))

    def commands(self, prefix: str = "", after: tuple[str, str] | None = None) -> Stream[CommandResult]:
        """Return all commands whose name begins with `prefix`, by name, with the projects that install each command.

        `after` is a command and a normalized project name: the stream begins after this pair.
        """
        require_text("commands", prefix)
        return self._stream(CommandResult, lambda db: map(_result, all_providers(db, prefix, after)))


def _result(provider: Provider) -> CommandResult:
    return CommandResult(
        command=provider.name,
        project=provider.project,
        normalized=provider.normalized,
        versions=provider.versions,
    )


READER = CommandsReader
