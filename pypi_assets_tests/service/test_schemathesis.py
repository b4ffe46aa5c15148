"""Schemathesis draws valid and invalid requests from the OpenAPI document and finds no failures."""

import subprocess
import sys
from pathlib import Path

import pytest

from pypi_assets.service.published_changes import PublishedChanges
from pypi_assets_tests.examples import examples
from pypi_assets_tests.service.published import Client

_RUN = "from schemathesis.cli import schemathesis; schemathesis()"
_CONFIG = """
[checks.negative_data_rejection]  # a list with too many items is too large
expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "428", "429", "5xx"]

[[operations]]  # no JSON Schema describes the grammar of requirements
include-path-regex = "^(/at/{at})?/v1/(resolve|collisions)$"
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", "400", "401", "403", "404", "409", "429", "5xx"]
"""


@pytest.mark.nightly
def test_schemathesis_finds_no_failures(journaled_client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def at_once(*_: object) -> bool:
        return False

    monkeypatch.setattr(PublishedChanges, "wait_beyond", at_once)  # requests that wait would take too long
    options = ["--checks", "all", "--max-examples", str(examples(3)), "--generation-deterministic", "--no-color"]
    options += ["--exclude-path", "/v1/changes/stream"]  # this route never ends
    options += ["--exclude-path", "/pypi"]  # a fault of XML-RPC has the status 200
    options += ["--max-response-time", "60", "--request-timeout", "60"]  # a busy machine is slow
    (tmp_path / "schemathesis.toml").write_text(_CONFIG)
    done = subprocess.run(
        [sys.executable, "-c", _RUN, "run", f"{journaled_client.url}openapi.json", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, "\n".join(line[:500] for line in done.stdout.splitlines())[-8_000:]
    assert " generated" in done.stdout
