"""`pypi-assets lookup ...`: a command for each question about names."""

from importlib import import_module

import click

from pypi_assets.cli.questions import command_of
from pypi_assets.questions.question import MODULES, TOP_LEVEL

_WITH_OWN_OPTIONS = ("files", "breaks", "collisions", "confusion")
"""The commands with more options than follow from a question. Each is in the module of its name."""


class _Lookups(click.Group):
    """The commands of the questions. Only the module of the one that is run is imported."""

    def list_commands(self, _: click.Context) -> list[str]:
        names = dict.fromkeys((*MODULES, *_WITH_OWN_OPTIONS))
        return [name for name in names if name not in TOP_LEVEL]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _WITH_OWN_OPTIONS:
            found: click.Command = getattr(import_module(f"pypi_assets.cli.{cmd_name}"), f"{cmd_name}_command")
            return found
        return command_of(cmd_name) if cmd_name in self.list_commands(ctx) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does. An unknown command without a similar name is probably a module to look up."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            names = self.list_commands(ctx)
            name = error.command_name
            unknown = click.NoSuchCommand(name, possibilities=names, ctx=ctx)
            if not unknown.possibilities:
                message = f"No such command {name!r}. Did you mean 'lookup module {name}'?"
                unknown = click.NoSuchCommand(name, message, ctx=ctx)
            raise unknown from None


@click.group("lookup", cls=_Lookups)
def lookup_group() -> None:
    """Query the newest LevelDB versions; for an earlier serial, the catalog.

    For the names of standard input, one a line, NAME is -; each answer is a line of JSON.
    """
