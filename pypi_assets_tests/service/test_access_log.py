import asyncio
import io
import json
from datetime import datetime, timedelta

from pypi_assets.service.access_log import LOGGER, AccessLog

SCOPE = {
    "method": "GET",
    "path": "/v1/modules/\x1b[31m\u202eyaml",
    "query_string": b"token=secret",
    "client": ("127.0.0.1", 5),
    "pypi_assets.route": "/v1/modules/{module}",
    "pypi_assets.request_id": "4f7a-1",
    "pypi_assets.headers": {"user-agent": "pip\x07" + "x" * 1_000, "authorization": "Basic secret"},
}


class Written(io.StringIO):
    """A stream that knows when it has been written to. Its users share one event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.has_lines = asyncio.Event()

    def flush(self) -> None:
        self.has_lines.set()


def test_a_line_is_inert_and_has_no_credentials():
    async def run() -> None:
        log.add(SCOPE, 200, 17, 0.0123)
        log.add(SCOPE | {"client": None}, 0, 0, 1.0)
        assert not stream.getvalue()
        await asyncio.wait_for(stream.has_lines.wait(), 60)

    stream = Written()
    log = AccessLog(stream)
    asyncio.run(run())
    first, second = stream.getvalue().splitlines()
    assert first.isascii()
    assert first.isprintable()
    assert "secret" not in first
    found = json.loads(first)
    assert (found["status"], found["bytes"], found["ms"], found["route"]) == (200, 17, 12.3, "/v1/modules/{module}")
    assert len(found["agent"]) == 200
    assert (found["level"], found["logger"], found["request_id"]) == ("INFO", LOGGER, "4f7a-1")
    assert datetime.fromisoformat(found["time"]).utcoffset() == timedelta()
    assert found["message"] == f"GET {SCOPE['path']} 200"
    assert json.loads(second)["client"] is None


def test_what_is_too_much_is_counted():
    async def run() -> None:
        for _ in range(10_005):
            log.add(SCOPE, 200, 17, 0.01)
        log.write()

    stream = io.StringIO()
    log = AccessLog(stream)
    asyncio.run(run())
    lines = stream.getvalue().splitlines()
    assert len(lines) == 10_001
    found = json.loads(lines[-1])
    assert (found["level"], found["left_out"]) == ("WARNING", 5)
