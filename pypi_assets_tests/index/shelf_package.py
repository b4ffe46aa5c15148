"""The package that `pypi-assets index new shelf` writes, imported from a folder of its own."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType

from pypi_assets.index.new_kind import write_package

MODULES = ("shelf_index", "shelf_server")


@contextmanager
def imported_shelf(folder: Path) -> Iterator[tuple[ModuleType, ModuleType]]:
    """Write the package into `folder`, and yield its modules: the adapter and the server for its tests."""
    write_package("shelf", folder)
    paths = [str(folder), str(folder / "tests")]
    sys.path[:0] = paths
    try:
        adapter, server = map(import_module, MODULES)
        yield adapter, server
    finally:
        for path in paths:
            sys.path.remove(path)
        for name in MODULES:
            sys.modules.pop(name, None)
