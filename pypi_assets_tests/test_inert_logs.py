"""Logs and tracebacks of a process of our own are inert, whoever logs."""

import subprocess
import sys

from pypi_assets_tests.hostile_index import HOSTILE, live_in_line

CODE = """
import logging, sys
from pypi_assets.inert_logs import make_logs_inert
make_logs_inert()
make_logs_inert()
text = sys.stdin.read()
logging.getLogger("library").warning("seen: %s", text)
try:
    raise ValueError(text)
except ValueError:
    logging.exception("failed")
raise KeyError(text) from RuntimeError(text)
"""


def test_what_a_library_logs_and_how_a_process_ends_is_inert() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", CODE], input=HOSTILE, encoding="utf-8", capture_output=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert live_in_line(done.stderr) == []
    for part in ("seen: =cmd", "ERROR:root:failed", "ValueError: =cmd", "RuntimeError: =cmd", "KeyError: "):
        assert part in done.stderr
