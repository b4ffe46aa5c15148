"""List the modules of an installed tree from the file system, as a reference for the archive reader.

This shares the reader's definition of a module (pypi_assets/distributions/module_names.py), but no code. pkgutil and
the suffixes of the import system find modules and packages, and the file system finds namespace packages. Nothing is
imported.
"""

import csv
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path


def install(wheels: Iterable[Path], target: Path) -> None:
    """Install the wheels into the folder `target` with pip, without their dependencies and without compiling.

    Afterwards `target` contains only the contents of site-packages. Scripts, headers and data, whose paths in RECORD
    lead outside site-packages, are deleted.
    """
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    command = [*pip, "--no-compile", "--target", str(target), *map(str, wheels)]
    subprocess.run(command, check=True, env=os.environ | {"PIP_ROOT_USER_ACTION": "ignore"}, capture_output=True)
    for record in target.glob("*.dist-info/RECORD"):
        with record.open(newline="", encoding="utf-8") as lines:
            outside = [path.lstrip("./") for path, *_ in csv.reader(lines) if path.startswith("../")]
        for path in outside:
            (target / path).unlink(missing_ok=True)


def installed_modules(root: Path) -> set[str]:
    """Return the dotted names of all modules below `root`, as `import` would find them with `root` on sys.path."""
    return set(_walk(root, "")) - {"__main__"}


def _walk(folder: Path, prefix: str) -> Iterable[str]:
    found = {module.name: module.ispkg for module in pkgutil.iter_modules([str(folder)])}
    for name, is_package in found.items():
        if name.isidentifier():
            yield f"{prefix}{name}"
            if is_package:
                yield from _walk(folder / name, f"{prefix}{name}.")
    for path in folder.iterdir():
        # pkgutil finds no namespace packages (PEP 420): folders without __init__ that no module hides
        if path.is_dir() and path.name.isidentifier() and path.name not in {*found, "__pycache__", "__init__"}:
            below = list(_walk(path, f"{prefix}{path.name}."))
            if below:
                yield f"{prefix}{path.name}"
                yield from below
