"""Routes of commands: which projects install one."""

from starlette.routing import Route

from pypi_assets.lookup.commands_reader import CommandResult, CommandsReader
from pypi_assets.lookup.hints import command_hints
from pypi_assets.service.answers import Answer
from pypi_assets.service.lookups import Results, published_answer, results_of
from pypi_assets.service.names import CommandName
from pypi_assets.service.operations import Call, Operation, Parameters, operation_routes
from pypi_assets.service.problems import ProblemError
from pypi_assets.service.service import Service


class CommandParameters(Parameters, frozen=True):
    """Which command."""

    name: CommandName


def routes(service: Service) -> list[Route]:
    """The routes of commands."""
    return list(operation_routes(service, [COMMAND]))


def _command(service: Service, call: Call[CommandParameters]) -> Answer:
    if call.pinned is not None:
        raise _not_at_serial()
    datasets = service.datasets()
    reader, name = datasets.reader(CommandsReader), call.parameters.name
    found = reader.command(name)
    hints = () if found.results else command_hints(reader, name, datasets.opened)
    return published_answer(datasets, results_of(datasets, found, hints))


def _not_at_serial() -> ProblemError:
    """The problem that the catalog has no index of commands; what the present projects had is not all there was."""
    return ProblemError(
        404,
        "not-found",
        "who installs a command is known for the latest serial alone: the catalog has no index of commands",
        parameter="at",
        accepts=(
            "the path without /at/SERIAL, for the latest; or /at/SERIAL/v1/projects/PROJECT/VERSION, which has the"
            " commands of a version as of a serial"
        ),
    )


COMMAND = Operation(
    path="/v1/commands/{name:path}",
    handler=_command,
    summary="Which projects install a command",
    parameters=CommandParameters,
    description="At an earlier serial it is always a problem, which names what has the commands of a version then.",
    answer=Results[CommandResult],
    problems=(404,),
)
