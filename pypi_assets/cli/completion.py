"""The command that prints the script by which a shell completes commands, options and their values."""

import click
from click.shell_completion import get_completion_class

from pypi_assets.cli.options import command

_VARIABLE = "_PYPI_ASSETS_COMPLETE"


@command("completion", "bash >> ~/.bashrc")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print the script that completes commands and options in a shell.

    The Tab key then completes commands, options and their values. Where the script belongs:

    \b
    bash: pypi-assets completion bash >> ~/.bashrc
    zsh:  pypi-assets completion zsh >> ~/.zshrc    (after the line with compinit)
    fish: pypi-assets completion fish > ~/.config/fish/completions/pypi-assets.fish
    """
    completion = get_completion_class(shell)
    if completion is None:
        raise LookupError(f"click completes nothing in {shell}")
    click.echo(completion(context.find_root().command, {}, "pypi-assets", _VARIABLE).source())
