"""The pages of one look-up: who provides an import, who installs a command, which file has a hash."""

from pypi_assets.service.pages.install import shell_requirement
from pypi_assets.service.pages.page import Content, Page, View, page_operations
from pypi_assets.service.parameters import CommandName, ImportName, Parameters, Sha256
from pypi_assets.service.questions import operation

_MOST_CANDIDATES = 50


class ImportPageParameters(Parameters, frozen=True):
    """Which import."""

    name: ImportName


class CommandPageParameters(Parameters, frozen=True):
    """Which command."""

    name: CommandName


class FilePageParameters(Parameters, frozen=True):
    """Which sha256."""

    sha256: Sha256


def _import(view: View, parameters: ImportPageParameters) -> Content:
    name = parameters.name
    owners = view.part(operation("owners"), name=name)
    [found] = owners["results"]
    candidates = found["candidates"]
    most = max((one["score"] for one in candidates), default=0.0)
    widths = [max(0, round(100 * one["score"] / most)) if most > 0 else 0 for one in candidates[:_MOST_CANDIDATES]]
    module = None if candidates else view.optional_part(operation("module"), module=found["import"])
    return Content(
        f"import {name}",
        {"owners": owners, **({"module": module} if module else {})},
        {
            "text": name,
            "found": found,
            "candidates": candidates[:_MOST_CANDIDATES],
            "widths": widths,
            "requirement": shell_requirement(candidates[0]["normalized"]) if candidates else None,
            "near_names": module or {},
        },
    )


def _command(view: View, parameters: CommandPageParameters) -> Content:
    name = parameters.name
    return Content(
        f"The command {name}", {"command": view.part(operation("command"), name=name)}, {"text": name, "name": name}
    )


def _file(view: View, parameters: FilePageParameters) -> Content:
    sha256 = parameters.sha256.lower()
    found = view.part(operation("hash"), sha256=sha256)
    return Content("A file by its hash", {"file": found}, {"text": sha256, "sha256": sha256})


IMPORT_PAGE = Page(
    path="/import/{name}",
    template="import.html",
    summary="Which project an import is of",
    parameters=ImportPageParameters,
    content=_import,
)
COMMAND_PAGE = Page(
    path="/command/{name}",
    template="command.html",
    summary="Which projects install a command",
    parameters=CommandPageParameters,
    content=_command,
)
FILE_PAGE = Page(
    path="/file/{sha256}",
    template="file.html",
    summary="Which live files have a sha256",
    parameters=FilePageParameters,
    content=_file,
)
OPERATIONS = page_operations(IMPORT_PAGE, COMMAND_PAGE, FILE_PAGE)
