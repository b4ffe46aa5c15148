"""Reads the body of a request, up to a limit, and parses it by a type."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.types import Receive

from pypi_assets.service.answers import JSON
from pypi_assets.service.problems import ProblemError, bad_parameter

_TOO_MANY = re.compile(r"Expected `array` of length <= (\d+)")


async def read_body(receive: Receive, headers: Mapping[str, str], kind: Any, most_bytes: int) -> Any:
    """What a body of JSON means as `kind`. Raises a ProblemError: too large, with too many items, not JSON, or not what
    `kind` is.
    """
    media_type = headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if media_type != JSON:
        raise ProblemError(415, "bad-request", f"the body is {media_type:.100}; it takes {JSON}")
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise ProblemError(415, "bad-request", "the body is compressed; it takes plain JSON")
    body = await _whole_body(receive, headers, most_bytes)
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        if match := _TOO_MANY.match(str(error)):
            raise ProblemError(
                413,
                "too-large",
                f"the body has more than {int(match[1]):,} items",
                parameter="body",
                accepts=f"at most {int(match[1]):,} items",
            ) from None
        raise bad_parameter("body", f"the body is not what it must be: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_parameter("body", f"the body is not JSON: {error}") from None


async def _whole_body(receive: Receive, headers: Mapping[str, str], most_bytes: int) -> bytes:
    announced = headers.get("content-length", "0")
    if not announced.isdecimal() or int(announced) > most_bytes:
        raise too_large(most_bytes)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ProblemError(400, "bad-request", "the request ended before its body")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > most_bytes:
            raise too_large(most_bytes)
        if not message.get("more_body", False):
            return b"".join(parts)


def too_large(most_bytes: int) -> ProblemError:
    """The problem of a body above the limit. The connection ends, since the rest of it is not read."""
    return ProblemError(
        413,
        "too-large",
        f"the body has more than {most_bytes} bytes",
        parameter="body",
        accepts=f"at most {most_bytes} bytes",
        headers=[("Connection", "close")],
    )
