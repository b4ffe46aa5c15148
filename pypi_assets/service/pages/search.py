"""The page of the search box: leads to the one page that is meant, or lists what may be meant."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pypi_assets.lookup.search_terms import LONGEST_TEXT, Kind, Meaning, meanings
from pypi_assets.service.pages.addresses import page_address
from pypi_assets.service.pages.page import Content, Page, View, page_operations
from pypi_assets.service.parameters import Parameters
from pypi_assets.service.problems import ProblemError
from pypi_assets.service.questions import operation


class SearchParameters(Parameters, frozen=True):
    """What is in the search box."""

    q: Annotated[
        str,
        Meta(
            max_length=LONGEST_TEXT,
            description=f"an import, a project, name==version, a command or a sha256: up to {LONGEST_TEXT} characters",
        ),
    ] = ""


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
    """What may have been meant: the hints and suggestions of several answers, each once."""

    hints: list[str] = field(default_factory=list)
    suggestions: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, answer: Mapping[str, Any]) -> None:
        """Add the hints of an answer of the API, or of a problem document."""
        for kept, name in ((self.hints, "hints"), (self.suggestions, "suggestions")):
            kept += [one for one in answer.get(name, ()) if one not in kept]


def _found(view: View, meaning: Meaning, near: _Near) -> Iterator[dict[str, Any]]:
    """Yield the results of one meaning; if there are none, add the suggestions of the API to `near`."""
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


SEARCH = Page(
    path="/search",
    template="search.html",
    summary="What a text may mean: an import, a project, a release, a command or a file",
    parameters=SearchParameters,
    content=_search,
)
OPERATIONS = page_operations(SEARCH)
