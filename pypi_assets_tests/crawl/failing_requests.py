"""Faults for a served index: failing requests and changelog answers."""

import xmlrpc.client

from starlette.responses import PlainTextResponse


def fail(path: str, *, status: int = 503, times: int = 10**9):
    """Return faults that answer the first `times` requests whose path contains `path` with `status`."""
    left = [times]

    def answer(request):
        if path not in request.url.path or left[0] == 0:
            return None
        left[0] -= 1
        return PlainTextResponse("out of order", status)

    return answer


def xmlrpc_answer(value: object) -> str:
    return xmlrpc.client.dumps((value,), methodresponse=True, allow_none=True)  # type: ignore[arg-type]
