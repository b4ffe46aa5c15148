"""Chooses the form of a Simple API page (PEP 691): the request's Accept header against what is offered."""

from collections.abc import Sequence

HTML = "text/html"
V1_HTML = "application/vnd.pypi.simple.v1+html"
V1_JSON = "application/vnd.pypi.simple.v1+json"
OFFERED = (HTML, V1_HTML, V1_JSON)


def choose(accept: str | None, offered: Sequence[str] = OFFERED) -> str:
    """The offered type with the greatest quality, the first of equals; the first one where none is acceptable."""
    ranges = [_parse(item) for item in (accept or "*/*").split(",")]
    return max(offered, key=lambda media_type: _quality(media_type, ranges))


def _parse(item: str) -> tuple[str, float]:
    media_range, *parameters = (part.strip() for part in item.lower().split(";"))
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return media_range, float(value)
            except ValueError:
                return media_range, 0.0
    return media_range, 1.0


def _quality(media_type: str, ranges: Sequence[tuple[str, float]]) -> float:
    """The quality of the most specific range that covers the type."""
    for wanted in (media_type, media_type.partition("/")[0] + "/*", "*/*"):
        if qualities := [quality for media_range, quality in ranges if media_range == wanted]:
            return max(qualities)
    return 0.0
