"""Looks up commands: which projects install one, and in which versions."""

from typing import TypedDict

from pypi_assets.lookup.answers import Answer, Stream
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

    def commands(self, prefix: str = "", after: tuple[str, str] | None = None) -> Stream[CommandResult]:
        """Return all commands whose name begins with `prefix`, by name, and of each the projects that install it; with
        `after`, those that come after this command and project (normalized).
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
