"""The question `command`: find the projects that install a command."""

from dataclasses import dataclass
from typing import Annotated

from pypi_assets.lookup.commands_reader import CommandResult
from pypi_assets.lookup.newest_requirements import newest_providers
from pypi_assets.questions.names import CommandName, Prefix
from pypi_assets.questions.question import Accepts, Parameters, question
from pypi_assets.questions.snapshot import After, Found, Snapshot, reduced


@dataclass(frozen=True)
class CommandParameters(Parameters):
    """Parameters of `command`."""

    name: CommandName
    prefix: Prefix = False
    latest: Annotated[
        bool, Accepts(text="list only each project's newest version that installs it, which may not be its newest")
    ] = False


@question(
    "command",
    path="/v1/commands/{name:path}",
    example="http",
    result=CommandResult,
    columns=lambda _given: ("command", "project", "versions"),
    name_column="command",
    sort_key=lambda result: (result["command"], result["normalized"]),
    key_size=2,
    nothing_found=lambda given: (
        f"no {'command begins with' if given.prefix else 'project installs the command'} {given.name}"
    ),
    hints=lambda snapshot, given: snapshot.command_hints(given.name),
)
def command(snapshot: Snapshot, given: CommandParameters, after: After = None) -> Found[CommandResult]:
    """List the projects that install a command, and in which versions.

    A version is listed if it installs the command as a console script.
    """
    found = snapshot.commands(given.name, after) if given.prefix else snapshot.installers(given.name)
    return reduced(found, newest_providers) if given.latest else found
