"""Each module of the catalog has a test file of its name, in the folder of its room."""

from pathlib import Path

import pytest

from pypi_assets import catalog

PACKAGE = Path(catalog.__file__).parent
TESTS = Path(__file__).parent
ROOMS = ("coordination", "ledger", "observed", "work", "derived", "reports")

MODULES = [path for path in sorted(PACKAGE.glob("*.py")) if path.stem != "__init__"] + [
    path for room in ROOMS for path in sorted((PACKAGE / room).glob("*.py")) if path.stem != "__init__"
]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_has_a_test_file_of_its_name(path: Path):
    assert (TESTS / path.relative_to(PACKAGE).parent / f"test_{path.stem}.py").exists()
