"""Recorded answers of the server that runs PyPI, replayed by a local server."""

import base64
import json
from pathlib import Path
from typing import Any

from pypi_assets_tests.index.loopback import Answer, Request

_PATH = Path(__file__).parent.parent / "data" / "warehouse-recording.json"
_PARTS = ("accept", "if-none-match", "range")
_KEPT = {"content-type", "x-pypi-last-serial", "etag", "vary"}


def load_recording() -> dict[str, Any]:
    return json.loads(_PATH.read_text(encoding="utf-8"))


def _key(method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[object, ...]:
    answer = {name.lower(): value for name, value in headers.items()}
    return method, path, body.strip(), *(answer.get(part) for part in _PARTS if method == "GET")


def replay(exchanges: list[dict[str, Any]], request: Request, index: str, files: str) -> Answer:
    """Return the recorded answer to `request`, or a 501 if there is none."""
    for exchange in exchanges:
        recorded, answer = exchange["request"], exchange["response"]
        path = recorded["path"].replace("{files}", "")
        body = recorded.get("body", "").encode()
        headers = recorded["headers"] | ({"accept": "*/*"} if path.startswith("/packages") else {})
        if _key(recorded["method"], path, headers, body) == _key(
            request.method, request.path, request.headers, request.body
        ):
            content = base64.b64decode(answer["body_base64"]) if "body_base64" in answer else answer["body"].encode()
            content = content.replace(b"{files}", files.encode()).replace(b"{index}", index.encode())
            return Answer(answer["status"], content, {k: v for k, v in answer["headers"].items() if k in _KEPT})
    return Answer(501)
