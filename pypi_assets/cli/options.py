"""Defines commands with an example in their help, and the option that most commands have."""

from collections.abc import Callable

import click

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def command(
    name: str, example: str = "", *, group: click.Group | None = None
) -> Callable[[Callable[..., None]], click.Command]:
    """A decorator for a command, of `group` or at the top level, with `example` at the end of its help."""
    path = f"{group.name} {name}" if group else name
    return (group or click).command(name, epilog=f"Example: pypi-assets {path} {example}".rstrip())
