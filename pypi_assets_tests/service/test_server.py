"""The service as processes: they answer at an address, and end when they are told to."""

import os
import re
import signal
import subprocess
import sys

import pytest
import requests

from pypi_assets_tests.cli.commands import PROCESS
from pypi_assets_tests.service.published import Published


@pytest.mark.parametrize("workers", [1, 2])
def test_the_command_answers_until_it_is_stopped(published: Published, workers: int):
    environment = os.environ | {
        "PYPI_ASSETS_HOME": str(published.home),
        "PYPI_ASSETS_INDEX_URL": published.index.url,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [*PROCESS, "serve", "--port", "0", "--workers", str(workers)]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        match = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert match, line + process.stderr.read()
        answer = requests.get(f"{match[0]}v1/modules/yaml", timeout=60)
        assert answer.json()["serial"] == published.index.serial
    finally:
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=60)[1]
    assert process.returncode in {0, -signal.SIGTERM}, rest
    assert "Traceback" not in rest
