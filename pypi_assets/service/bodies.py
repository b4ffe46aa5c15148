"""Reads the body of a request, up to a limit, and parses it by a type."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec
from starlette.types import Receive

from pypi_assets.service.answers import JSON
from pypi_assets.service.problems import ProblemError, bad_parameter

_MOST_BODIES, _MOST_BODIES_OF_A_CLIENT = 16, 4
_TOO_MANY = re.compile(r"Expected `array` of length <= (\d+)")


class BodyRoom:
    """Counts the bytes of all bodies of a process that are being received or answered: as many as `_MOST_BODIES` of the
    greatest size have, of which one client may have a part. It is used by the event loop alone.
    """

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    @contextmanager
    def held_by(self, client: str, most_body_bytes: int) -> Iterator[Callable[[int], None]]:
        """Yield a function that counts some more bytes of the client's body, until the end of the block. It raises a
        ProblemError where there is no room: 429 if the client has its part, else 503.
        """
        size = 0

        def hold(more: int) -> None:
            nonlocal size
            size += more
            self._held[client] += more
            headers = [("Retry-After", "1"), ("Connection", "close")]
            if self._held[client] > _MOST_BODIES_OF_A_CLIENT * most_body_bytes:
                raise ProblemError(429, "busy", "this client sends too much at once", headers=headers)
            if self._held.total() > _MOST_BODIES * most_body_bytes:
                raise ProblemError(503, "busy", "too much is being received at once", headers=headers)

        try:
            yield hold
        finally:
            self._held[client] -= size
            if not self._held[client]:
                del self._held[client]


async def read_body(
    receive: Receive, headers: Mapping[str, str], kind: Any, most_bytes: int, hold: Callable[[int], None]
) -> Any:
    """What a body of JSON means as `kind`. Raises a ProblemError: too large, with too many items, not JSON, or not what
    `kind` is. `hold` receives how many bytes came, and can raise another one.
    """
    media_type = headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if media_type != JSON:
        raise ProblemError(415, "bad-request", f"the body is {media_type:.100}; it takes {JSON}")
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise ProblemError(415, "bad-request", "the body is compressed; it takes plain JSON")
    body = await _whole_body(receive, headers, most_bytes, hold)
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


async def _whole_body(
    receive: Receive, headers: Mapping[str, str], most_bytes: int, hold: Callable[[int], None]
) -> bytes:
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
        hold(len(parts[-1]))
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
