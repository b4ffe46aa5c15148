"""Import test modules before collection, so that workers that start together share the work of compiling them."""

import importlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pypi_assets_tests.tiers import ROOT


def import_tests(paths: Iterable[Path], share: float) -> None:
    """Import the test modules in the given folders, starting at a position in their list from 0 to 1.

    pytest compiles each module on its first import and caches the result. Import errors are ignored here, because
    collection reports them.
    """
    files = [file for path in paths if path.is_dir() for file in sorted(path.resolve().rglob("test_*.py"))]
    begin = int(share * len(files))
    for file in [*files[begin:], *files[:begin]]:
        with suppress(Exception):
            importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
