"""The command line offers what readers declare of their commands, and what is not a name is refused at once."""

import re
from typing import Any

import click
import pytest
from click.testing import CliRunner

from pypi_assets.cli.lookup import lookup_group
from pypi_assets.lookup.dataset_readers import lookup_commands, reader_class
from pypi_assets.lookup.lookup_command import LookupCommand, LookupNameError
from pypi_assets.questions.question import all_questions

QUESTIONS = [one.name for one in all_questions()]
COMMANDS = {command.name: command for _, command in lookup_commands()}
DATASET_OF = {command.name: dataset for dataset, command in lookup_commands()}


def options_of(command: LookupCommand[Any]) -> set[str]:
    with click.Context(lookup_group) as context:
        made = lookup_group.get_command(context, command.name)
    assert made is not None
    return {one for param in made.params if isinstance(param, click.Option) for one in param.opts}


def test_the_list_of_commands_cuts_no_sentence() -> None:
    result = CliRunner().invoke(lookup_group, ["--help"], terminal_width=78)
    _, listed = result.stdout.split("Commands:\n")
    assert len(listed.splitlines()) == len(COMMANDS) + len(QUESTIONS)
    assert "..." not in listed


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_options_follow_from_what_is_declared(command: LookupCommand[Any]) -> None:
    expected = {"--limit", "--json", "--csv", "--header"}
    expected |= {"--prefix"} if command.prefix else set()
    expected |= {"--latest"} if command.latest or command.newest else set()
    expected |= {"--transitive", "--depth"} if command.transitive else set()
    expected |= {"--at"} if command.at_serial else set()
    expected |= {"--all"} if command.ever else set()
    expected |= {"--file"} if command.name_of_file else set()
    assert options_of(command) == expected
    assert command.help.endswith(".")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("project", "demo>=1"), ("project", ""), ("hash", "demo"), ("hash", "ab"), ("hash", "")],
)
def test_what_is_not_a_name_is_refused_before_anything_is_opened(name: str, wrong: str) -> None:
    command = COMMANDS[name]
    reader_kind = reader_class(DATASET_OF[name])
    unopened = reader_kind.__new__(reader_kind)
    queries = [lambda: command.nothing_found(wrong), lambda: command.answer(unopened, wrong)]
    for lookup in (command.at_serial, command.ever):
        if lookup:
            queries += [
                lambda lookup=lookup: lookup.nothing_found(wrong),
                lambda lookup=lookup: lookup.answer(None, 1, wrong),
            ]
    for query in queries:
        with pytest.raises(LookupNameError, match=re.escape(repr(wrong))):
            query()


def test_any_text_is_a_name_elsewhere() -> None:
    for text in ("", "demo>=1", "größe"):
        assert COMMANDS["dependents"].nothing_found(text).endswith(f" {text}")


def test_a_name_that_is_refused_is_a_wrong_value() -> None:
    assert issubclass(LookupNameError, ValueError)
