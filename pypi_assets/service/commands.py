"""Routes of commands: which projects install one."""

from starlette.routing import Route

from pypi_assets.lookup.commands_reader import CommandResult, CommandsReader
from pypi_assets.lookup.hints import command_hints
from pypi_assets.service.answers import Answer
from pypi_assets.service.lookups import Results, published_answer, results_of
from pypi_assets.service.names import CommandName
from pypi_assets.service.operations import Call, Operation, Parameters, operation_routes
from pypi_assets.service.service import Service


class CommandParameters(Parameters, frozen=True):
    """Which command."""

    name: CommandName


def routes(service: Service) -> list[Route]:
    """The routes of commands. The catalog cannot find one at an earlier serial, so there are none of those."""
    return list(operation_routes(service, [COMMAND]))


def _command(service: Service, call: Call[CommandParameters]) -> Answer:
    datasets = service.datasets()
    reader, name = datasets.reader(CommandsReader), call.parameters.name
    found = reader.command(name)
    hints = () if found.results else command_hints(reader, name, datasets.opened)
    return published_answer(datasets, results_of(datasets, found, hints))


COMMAND = Operation(
    path="/v1/commands/{name:path}",
    handler=_command,
    summary="Which projects install a command",
    parameters=CommandParameters,
    answer=Results[CommandResult],
    at_serial=False,
)
