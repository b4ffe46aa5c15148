"""Problems as pages: the facts of the problem document, for clients that prefer HTML, that is, for browsers.

A page also links to what people can do next, such as the latest state, the first moment with an answer, or a search.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import unquote

import msgspec
from markupsafe import Markup, escape

from pypi_assets.service.pages.rendering import HEADERS, HTML, is_local_page, page_address, render
from pypi_assets.service.pins import GONE
from pypi_assets.service.problems import Problem, ProblemError, problem_answer, status_phrase
from pypi_assets.service.responses import Lasting, WholeAnswer, quality

_LEAST_WEIGHT = 0.5
"""The least weight of HTML for a page. Package installers accept HTML too, but with a low weight."""
_LONGEST_HEADER = 1_000
_PINNED = re.compile(r"(/at/([^/]+))(/.*)")
_NAMED = re.compile(r"/(?:project|releases|history|dependents|changes|import|command|release|simple)/([^/]+)/?.*")
_MISSING = 404


class Way(NamedTuple):
    """A link to a way out of a problem. The address is escaped."""

    text: str
    address: Markup


def answer_problem(
    error: ProblemError, headers: Mapping[str, str], raw_path: bytes = b"/", request_id: str | None = None
) -> WholeAnswer:
    """Return the answer to a request that ended with `error`: a page for browsers, else the problem document.

    `headers` are the request's headers with lower-case names. `raw_path` is its path as received.
    """
    if not prefers_html(headers.get("accept", "")):
        return problem_answer(error, request_id=request_id)
    path = raw_path.decode("latin-1")
    pinned = _PINNED.fullmatch(path)
    page = pinned[3] if pinned else path
    name = unquote(named[1], errors="replace") if (named := _NAMED.fullmatch(page)) else ""
    problem = msgspec.to_builtins(error.problem)
    content = {
        "title": error.problem.title,
        "problem": {"parameter": None, "accepts": None, **problem},
        "request_id": request_id,
        "phrase": status_phrase(error.problem.status),
        "is_missing": error.problem.status == _MISSING,
        "prefix": pinned[1] if pinned and is_local_page(path) else "",
        "ways": list(_ways(error.problem, pinned, page, name)),
        "text": name,
    }
    return WholeAnswer(
        render("problem.html", content),
        HTML,
        status=error.problem.status,
        lasting=Lasting.NO_STORE,
        headers=(*error.headers, *HEADERS),
        varies=("Accept",),
    )


def _ways(problem: Problem, pinned: re.Match[str] | None, page: str, name: str) -> Iterator[Way]:
    """Yield links that may help, the most useful first.

    `page` is the path without its moment, and `name` is the name in it.
    """
    if pinned and is_local_page(page):
        if (first := problem.first_serial) is not None:
            yield Way(f"See it at serial {first}, the first one with an answer", escape(f"/at/{first}{page}"))
        elif problem.status == GONE:
            serial = pinned[2].partition(".")[0]
            yield Way(f"See serial {serial} as it is known now", escape(f"/at/{serial}{page}"))
        yield Way("See the latest", escape(page))
    elif problem.status >= 500 and is_local_page(page):
        yield Way("Try again", escape(page))
    if name and (address := page_address("", "search", q=name)) is not None:
        yield Way(f"Search for {name}", escape(address))
    yield Way("Go to the first page", escape("/"))
    yield Way("Read about such problems", escape(problem.type))


def prefers_html(accept: str) -> bool:
    """Check whether the header Accept contains HTML with a higher weight than JSON.

    >>> prefers_html("text/html,application/xhtml+xml,*/*;q=0.8"), prefers_html("*/*")
    (True, False)
    """
    weights: dict[str, float] = {}
    for item in accept[:_LONGEST_HEADER].lower().split(","):
        name, _, parameters = item.partition(";")
        weights[name.strip()] = quality(parameters)
    wanted = weights.get("text/html", 0.0)
    others = [weight for name, weight in weights.items() if name.endswith(("/json", "+json"))]
    return wanted >= _LEAST_WEIGHT and wanted > max(others, default=0.0)
