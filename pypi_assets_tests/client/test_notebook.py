"""The notebook runs from the first cell to the last with a service of real files, and is saved without outputs."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pypi_assets
from pypi_assets.service.server import running
from pypi_assets_tests.service.published import Published

NOTEBOOK = Path(pypi_assets.__file__).parent.parent / "docs" / "client.ipynb"
NOTEBOOK_FORMAT = 4


def cells() -> list[dict[str, Any]]:
    """Return the code cells."""
    notebook = json.loads(NOTEBOOK.read_text())
    assert notebook["nbformat"] == NOTEBOOK_FORMAT
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def program(location: str) -> str:
    """Return the code of all cells, with this location in the cell of the parameters."""
    all_cells = cells()
    [parameters] = [cell for cell in all_cells if "parameters" in cell["metadata"].get("tags", ())]
    codes = [f"location = {location!r}" if cell is parameters else "".join(cell["source"]) for cell in all_cells]
    assert "".join(parameters["source"]).startswith("location = ")
    return "\n\n".join(codes)


def test_notebook_is_saved_without_outputs() -> None:
    assert len(cells()) > 4
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells())


def test_all_cells_run_with_a_service_and_a_home(published: Published) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with published.service() as service, running(service) as url:
        for location in (url, str(published.home)):
            command = [sys.executable, "-W", "error", "-c", program(location)]
            result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
            assert result.returncode == 0, result.stderr
            assert f"as of serial {published.index.serial}" in result.stdout
            assert "PyYAML ['6.0']" in result.stdout
            assert "2 more results" in result.stdout
            assert "1000000000000" in result.stdout
