"""Problems as pages: the same facts as the problem document, for clients that prefer HTML, which are browsers."""

from collections.abc import Mapping

import msgspec

from pypi_assets.service.answers import Answer, Lasting, quality
from pypi_assets.service.pages.rendering import HEADERS, HTML, render
from pypi_assets.service.problems import ProblemError, problem_answer, status_phrase

_LEAST_WEIGHT = 0.5
"""Clients of packages accept HTML too, as the last of all."""
_LONGEST_HEADER = 1_000


def answer_problem(error: ProblemError, headers: Mapping[str, str], request_id: str | None = None) -> Answer:
    """The answer to a request with these headers (by lower-case name) that ended with `error`: a page for browsers,
    the problem document for all others."""
    if not prefers_html(headers.get("accept", "")):
        return problem_answer(error, request_id=request_id)
    problem = msgspec.to_builtins(error.problem)
    content = {
        "title": error.problem.title,
        "problem": {"parameter": None, "accepts": None, "hints": (), **problem},
        "request_id": request_id,
        "phrase": status_phrase(error.problem.status),
    }
    return Answer(
        render("problem.html", content),
        HTML,
        status=error.problem.status,
        lasting=Lasting.NO_STORE,
        headers=(*error.headers, *HEADERS),
        varies=("Accept",),
    )


def prefers_html(accept: str) -> bool:
    """Whether the header Accept names HTML, with more weight than any JSON.

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
