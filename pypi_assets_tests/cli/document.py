"""Generate the table of docs/cli.md from the commands. As a program, this module writes the table."""

from collections.abc import Iterator
from pathlib import Path

import click

from pypi_assets.cli import _COMMANDS
from pypi_assets_tests.cli.commands import every_command
from pypi_assets_tests.generated_part import with_generated

PAGE = Path(__file__).parent.parent.parent / "docs" / "cli.md"
OF_ALL = {"--json", "--csv", "--header", "--help"}
"""Options that the page describes once for all commands."""
ELSEWHERE = {"devindex": "development.md"}
"""Groups whose commands are listed on another page."""


def table() -> str:
    """Return a table of commands for each section of the help, with their options and descriptions."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    for title, section in _COMMANDS.items():
        yield f"### {title}"
        yield ""
        yield "| command | options | |"
        yield "|---|---|---|"
        for name, (_, short_help) in section.items():
            if name in ELSEWHERE:
                yield f"| `{name} ...` | | {short_help} [{name}]({ELSEWHERE[name]}) |"
            else:
                yield from (_row(path, command) for path, command in every_command() if path[0] == name)
        yield ""


def _row(path: tuple[str, ...], command: click.Command) -> str:
    with click.Context(command, info_name=" ".join(path)) as context:
        arguments = [piece for piece in command.collect_usage_pieces(context) if piece != "[OPTIONS]"]
        shown = " ".join([*path, *arguments]).replace("|", r"\|")
        options = " ".join(
            f"`{_option(one)}`" for one in command.params if isinstance(one, click.Option) and _is_shown(one)
        )
        return f"| `{shown}` | {options} | {command.get_short_help_str(1_000).rstrip('.')}. |"


def _is_shown(option: click.Option) -> bool:
    return not option.hidden and option.opts[-1] not in OF_ALL


def _option(option: click.Option) -> str:
    names = [name for name in (*option.opts, *option.secondary_opts) if name.startswith("--")] or option.opts
    return "/".join(names)


def rendered(page: str) -> str:
    """Return the page with the current table."""
    return with_generated(page, "commands", table())


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text()))
