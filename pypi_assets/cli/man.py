"""The command that prints the manual page. It is made from the commands themselves, so it has what `--help` has."""

from collections.abc import Iterator
from typing import Any

import click

from pypi_assets.cli.options import command

_EXAMPLE = "Example: "
_EXIT_STATUS = {
    "0": "Success. If nothing is found, the answer is empty; that is not a failure.",
    "1": "It could not be done; one message has the reason.",
    "2": "Wrong usage or wrong settings; the message names the option or the variable.",
    "130": "Stopped by Ctrl-C. What was done is kept; the same command continues.",
}


@command("man", "| man -l -")
@click.pass_context
def man_command(context: click.Context) -> None:
    """Print the manual page of all commands, for man.

    To install it: pypi-assets man > ~/.local/share/man/man1/pypi-assets.1
    """
    from importlib.metadata import version

    root = context.find_root().command
    click.echo("\n".join(manual_page(root, version("pypi-assets"))))


def manual_page(root: click.Command, version: str) -> Iterator[str]:
    """The lines of the page, in the format of man(7)."""
    context = click.Context(root, info_name="pypi-assets")
    summary, _, rest = (root.help or "").partition("\n\n")
    yield f'.TH PYPI\\-ASSETS 1 "" "pypi-assets {_escaped(version)}" "User Commands"'
    yield from (".SH NAME", f"pypi\\-assets \\- {_escaped(' '.join(summary.split()))}")
    yield from (".SH SYNOPSIS", r".B pypi\-assets", r"COMMAND [OPTIONS] [ARGUMENTS]")
    yield from (".SH DESCRIPTION", *_paragraphs(rest))
    yield from (".SH OPTIONS", *_options(root, context))
    yield ".SH COMMANDS"
    yield from _described(root, context)
    yield from (".SH ENVIRONMENT", "Each variable can also be set in a file; see PYPI_ASSETS_ENV_FILE.")
    for name, description in _variables():
        yield from (".TP", rf"\fB{_escaped(name)}\fR", _escaped(description))
    yield ".SH EXIT STATUS"
    for code, meaning in _EXIT_STATUS.items():
        yield from (".TP", rf"\fB{code}\fR", _escaped(meaning))


def _described(found: click.Command, context: click.Context) -> Iterator[str]:
    """The sections of a command, or of all commands of a group."""
    if isinstance(found, click.Group):
        for name in found.list_commands(context):
            below = found.get_command(context, name)
            if below is not None:
                yield from _described(below, click.Context(below, info_name=name, parent=context))
        return
    usage = " ".join([context.command_path, *found.collect_usage_pieces(context)])
    yield from (".SS", _escaped(usage), *_paragraphs(found.help or ""))
    yield from _options(found, context)
    if found.epilog:
        yield from (".PP", "Example:", ".PP", ".EX", _escaped(found.epilog.removeprefix(_EXAMPLE)), ".EE")


def _options(found: click.Command, context: click.Context) -> Iterator[str]:
    for parameter in found.params:
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record:
            yield from (".TP", rf"\fB{_escaped(record[0])}\fR", _escaped(record[1]))


def _paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a help; one that click does not wrap, after `\\b`, is not wrapped here either."""
    for paragraph in text.split("\n\n"):
        lines = [line.strip() for line in paragraph.splitlines()]
        if lines[:1] == ["\b"]:
            yield from (".PP", ".nf", *map(_escaped, lines[1:]), ".fi")
        else:
            yield from (".PP", _escaped(" ".join(lines)))


def _variables() -> Iterator[tuple[str, str]]:
    from pypi_assets.settings import ENV_PREFIX, Settings

    fields: dict[str, Any] = Settings.model_fields
    for name, field in fields.items():
        yield f"{ENV_PREFIX}{name.upper()}", field.description or ""


def _escaped(text: str) -> str:
    """`text` as man shows it unchanged: a backslash, a hyphen and a dot at the start mean something else to it."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped
