"""The newest answers: a snapshot that reads the LevelDB versions."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from pypi_assets.lookup.commands_reader import CommandResult, CommandsReader
from pypi_assets.lookup.hints import command_hints, module_hints
from pypi_assets.lookup.modules_reader import ModuleResult, ModulesReader
from pypi_assets.lookup.reader import Reader
from pypi_assets.questions.snapshot import After, Found

OpenReader = Callable[[type[Any]], Any]
"""Returns the open reader of a class, such as ModulesReader. Raises NoVersionError."""
OpenOther = Callable[[str], AbstractContextManager[Reader | None]]
"""Opens another dataset for a hint, or gives None if that costs more than a hint is worth."""


@dataclass(frozen=True, slots=True)
class PublishedSnapshot:
    """The index as of the versions that the readers have open. Answers name their serial."""

    reader: OpenReader
    open_other: OpenOther

    def providers(self, module: str, /) -> Found[ModuleResult]:
        """See `Snapshot.providers`."""
        return self._modules.module(module)

    def few_providers(self, module: str, most: int, /) -> Found[ModuleResult] | None:
        """See `Snapshot.few_providers`."""
        return self._modules.module_of_few(module, most)

    def modules(self, beginning: str, after: After, /) -> Found[ModuleResult]:
        """See `Snapshot.modules`."""
        return self._modules.modules(beginning, _pair(after))

    def module_hints(self, module: str, /) -> Iterator[str]:
        """See `Snapshot.module_hints`."""
        return module_hints(self._modules, module, self.open_other)

    def installers(self, command: str, /) -> Found[CommandResult]:
        """See `Snapshot.installers`."""
        return self._commands.command(command)

    def commands(self, beginning: str, after: After, /) -> Found[CommandResult]:
        """See `Snapshot.commands`."""
        return self._commands.commands(beginning, _pair(after))

    def command_hints(self, command: str, /) -> Iterator[str]:
        """See `Snapshot.command_hints`."""
        return command_hints(self._commands, command, self.open_other)

    @property
    def _modules(self) -> ModulesReader:
        return self.reader(ModulesReader)  # type: ignore[no-any-return]

    @property
    def _commands(self) -> CommandsReader:
        return self.reader(CommandsReader)  # type: ignore[no-any-return]


def _pair(after: After) -> tuple[str, str] | None:
    """Return the name and the normalized project that a page begins after."""
    return None if after is None else (after[0], after[1])
