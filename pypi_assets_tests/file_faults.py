"""Faults of file servers, for a devindex. Each fault affects only the URLs of files."""

import re
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

Faults = Callable[[Request], Response | None]


def is_file(request: Request) -> bool:
    return request.url.path.startswith("/packages/") and not is_sidecar(request)


def is_sidecar(request: Request) -> bool:
    return request.url.path.endswith(".metadata")


def ignores_ranges(request: Request) -> None:
    """Serve the whole file with status 200, although the request names a byte range."""
    request.scope["headers"] = [(name, value) for name, value in request.scope["headers"] if name != b"range"]


def answers_ranges(
    content: bytes, status: int = 206, total: int | None = None, cut: int = 0, more: bytes = b""
) -> Faults:
    """Serve byte ranges of `content`, with another `status` or `total`, `cut` bytes short, or with `more` appended."""

    def fault(request: Request) -> Response | None:
        byte_range = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("range", ""))
        if byte_range is None or not is_file(request):
            return None
        first, last = int(byte_range[1]), int(byte_range[2])
        part = content[first : last + 1]
        headers = {"content-range": f"bytes {first}-{last}/{len(content) if total is None else total}"}
        return Response(part[: len(part) - cut] + more, status, headers=headers)

    return fault


def answers_files(status: int) -> Faults:
    return lambda request: Response(b"", status) if is_file(request) else None


def answers_sidecars(status: int, content: bytes = b"") -> Faults:
    return lambda request: Response(content, status) if is_sidecar(request) else None


def redirects_files(to: Callable[[Request], str]) -> Faults:
    """Redirect requests for files to the URL that `to` returns, with `?moved` appended, and serve those."""
    return lambda request: (
        RedirectResponse(f"{to(request)}?moved") if is_file(request) and not request.url.query else None
    )


def at_first(fault: Faults, times: int = 1) -> Faults:
    """Apply a fault only to the first `times` requests for files."""
    left = [fault] * times
    return lambda request: left.pop()(request) if left and request.url.path.startswith("/packages/") else None
