"""Writes a package that adds a kind of index: a working example, with its tests, to be changed.

The files of the package are the templates next to this module, in which `shelf` stands for the name of the kind.
"""

import keyword
import re
import sys
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from pypi_assets.errors import ExpectedError
from pypi_assets.index.kind_names import BUILT_IN, added_kinds

_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_FORMS = re.compile(r"shelf_|shelf|Shelf")
_LONGEST_NAME = 40
_FILES = {
    "pyproject.toml.txt": "pyproject.toml",
    "README.md.txt": "README.md",
    "adapter.py.txt": "shelf_index.py",
    "server.py.txt": "tests/shelf_server.py",
    "test_adapter.py.txt": "tests/test_shelf_index.py",
}


class NewKindError(ExpectedError):
    """The name cannot be the name of a kind of index, or the folder cannot be written."""


def write_package(name: str, folder: Path) -> Sequence[Path]:
    """Write the package of a kind of index into a folder, which must be empty or not exist. Return the written files.

    All files appear at once. Raises NewKindError for a name that cannot be used, and for a folder with files in it.
    """
    require_name(name)
    folder = folder.absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise NewKindError(f"{folder} already exists and is not an empty folder: name another folder with --into")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as unfinished:
            package = Path(unfinished) / "package"
            for template, path in _FILES.items():
                written = package / _named(path, name)
                written.parent.mkdir(parents=True, exist_ok=True)
                text = files(__name__).joinpath(template).read_text(encoding="utf-8")
                written.write_text(_named(text, name), encoding="utf-8")
            package.rename(folder)  # fails if another process has put files there in the meantime
    except OSError as error:
        raise NewKindError(f"cannot write {folder}: {error.strerror or error}") from error
    return [folder / _named(path, name) for path in _FILES.values()]


def require_name(name: str) -> None:
    """Raise NewKindError unless a new kind of index can have this name."""
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise NewKindError(
            f"{name[:100]!r} cannot be the name of a kind of index: use lower-case letters, digits and single hyphens,"
            f" beginning with a letter, at most {_LONGEST_NAME} characters; for example `shelf`"
        )
    if name in BUILT_IN:
        raise NewKindError(f"{name!r} is a built-in kind of index, which a package cannot replace: use another name")
    if name in added_kinds():
        raise NewKindError(f"an installed package already adds the kind of index {name!r}: use another name")
    module = f"{_module(name)}_index"
    if keyword.iskeyword(_module(name)) or module in sys.stdlib_module_names:
        raise NewKindError(
            f"{name!r} cannot be the name of a kind of index, since Python reserves it: use another name"
        )


def _named(text: str, name: str) -> str:
    """Return a template's text with `name` in all its forms: as a package, a module and a class."""
    forms = {"shelf_": f"{_module(name)}_", "shelf": name}
    forms |= {"Shelf": name.title().replace("-", "")}
    return _FORMS.sub(lambda found: forms[found[0]], text)


def _module(name: str) -> str:
    return name.replace("-", "_")
