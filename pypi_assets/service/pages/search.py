"""The pages of the search box, and of look-ups of imports, commands and files.

A search redirects if it has only one result.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pypi_assets.lookup.hints import LONGEST_TEXT, Kind, Meaning, meanings
from pypi_assets.service.pages.page import Content, View, page, page_operations, shell_requirement
from pypi_assets.service.pages.rendering import page_address
from pypi_assets.service.parameters import CommandName, ImportName, OperationParameters, Sha256
from pypi_assets.service.problems import ProblemError
from pypi_assets.service.questions import operation

_MOST_CANDIDATES = 50


class SearchParameters(OperationParameters, frozen=True):
    """The text in the search box."""

    q: Annotated[
        str,
        Meta(
            max_length=LONGEST_TEXT,
            description=f"an import, project, name==version, command or SHA-256, up to {LONGEST_TEXT} characters",
        ),
    ] = ""


@page("/search", "search.html", "Search for an import, a project, a release, a command or a file")
def _search(view: View, parameters: SearchParameters) -> Content:
    text = parameters.q.strip()
    near = _Near()
    results = [found for one in meanings(text) for found in _found(view, one, near)]
    if results:
        near = _Near()
    parts = {"query": text, "results": results, "hints": near.hints, "suggestions": near.suggestions}
    addresses = [_address(view, one) for one in results]
    return Content(
        f"Search for {text}" if text else "Search",
        parts,
        {"text": text, "addresses": addresses, "was_searched": bool(text)},
        leads_to=addresses[0] if len(addresses) == 1 else None,
    )


@dataclass
class _Near:
    """Hints and suggestions of several answers, each once."""

    hints: list[str] = field(default_factory=list)
    suggestions: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, answer: Mapping[str, Any]) -> None:
        """Add the hints of an answer of the API or of a problem document."""
        for kept, name in ((self.hints, "hints"), (self.suggestions, "suggestions")):
            kept += [one for one in answer.get(name, ()) if one not in kept]


def _found(view: View, meaning: Meaning, near: _Near) -> Iterator[dict[str, Any]]:
    """Yield the results for one meaning. If there are none, add the suggestions of the API to `near`."""
    kind, name, version = meaning
    try:
        match kind:
            case Kind.IMPORT:
                [found] = view.part(operation("owners"), name=name, limit=3)["results"]
                if not found["candidates"]:
                    near.add(view.part(operation("module"), module=name))
                else:
                    yield _result(kind, name, module=found["module"], candidates=found["candidates"])
            case Kind.COMMAND:
                if not view.pinned:
                    found = view.part(operation("command"), name=name)
                    near.add(found)
                    if found["results"]:
                        yield _result(kind, name, projects=[one["project"] for one in found["results"][:3]])
            case Kind.FILE:
                found = view.part(operation("hash"), sha256=name)
                if found["results"]:
                    yield _result(kind, name, files=found["results"][:3])
            case Kind.RELEASE:
                found = view.part(operation("release"), project=name, version=version)["result"]
                yield _result(kind, found["project"], version=found["version"])
            case Kind.PROJECT:
                found = view.part(operation("releases"), project=name)["result"]
                dependents = view.part(operation("dependents"), project=name, limit=1)
                yield _result(
                    kind,
                    found["project"],
                    newest=found["newest"],
                    summary=found["summary"],
                    releases=len(found["releases"]),
                    dependents=dependents["count"],
                )
    except ProblemError as error:
        if error.problem.status not in {400, 404}:
            raise
        near.add(msgspec.to_builtins(error.problem))
        if kind == Kind.RELEASE:
            yield from _found(view, Meaning(Kind.PROJECT, name), near)


def _result(kind: Kind, name: str, **facts: Any) -> dict[str, Any]:
    return {"kind": kind.value, "name": name, **facts}


def _address(view: View, result: dict[str, Any]) -> str | None:
    version = [result["version"]] if "version" in result else []
    return page_address(view.prefix, result["kind"], result["name"], *version)


class ImportPageParameters(OperationParameters, frozen=True):
    """The import of a page."""

    name: ImportName


class CommandPageParameters(OperationParameters, frozen=True):
    """The command of a page."""

    name: CommandName


class FilePageParameters(OperationParameters, frozen=True):
    """The hash of a page."""

    sha256: Sha256


@page("/import/{name}", "import.html", "Show which project an import comes from")
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


@page("/command/{name}", "command.html", "Show which projects install a command")
def _command(view: View, parameters: CommandPageParameters) -> Content:
    name = parameters.name
    return Content(
        f"The command {name}", {"command": view.part(operation("command"), name=name)}, {"text": name, "name": name}
    )


@page("/file/{sha256}", "file.html", "Show which live files have a SHA-256")
def _file(view: View, parameters: FilePageParameters) -> Content:
    sha256 = parameters.sha256.lower()
    found = view.part(operation("hash"), sha256=sha256)
    return Content("A file by its hash", {"file": found}, {"text": sha256, "sha256": sha256})


OPERATIONS = page_operations(_search, _import, _command, _file)
