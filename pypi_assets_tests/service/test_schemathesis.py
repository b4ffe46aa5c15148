"""Schemathesis draws requests from the OpenAPI document, right and wrong ones, and finds nothing."""

import subprocess
import sys
from pathlib import Path

from pypi_assets_tests.service.published import Client

_RUN = "from schemathesis.cli import schemathesis; schemathesis()"


def test_nothing_is_found(client: Client, tmp_path: Path):
    options = ["--checks", "all", "--max-examples", "3", "--generation-deterministic", "--no-color"]
    done = subprocess.run(
        [sys.executable, "-c", _RUN, "run", f"{client.url}openapi.json", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, "\n".join(line[:500] for line in done.stdout.splitlines())[-8_000:]
    assert " generated" in done.stdout
