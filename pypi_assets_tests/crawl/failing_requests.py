"""Faults of a served index: requests that fail, and answers of the changelog."""

import xmlrpc.client

from starlette.responses import PlainTextResponse


def fail(path: str, *, status: int = 503, times: int = 10**9):
    """Faults: the first `times` requests for paths that hold `path` are answered with `status`."""
    left = [times]

    def answer(request):
        if path not in request.url.path or left[0] == 0:
            return None
        left[0] -= 1
        return PlainTextResponse("out of order", status)

    return answer


def xmlrpc_answer(value: object) -> str:
    return xmlrpc.client.dumps((value,), methodresponse=True, allow_none=True)  # type: ignore[arg-type]
