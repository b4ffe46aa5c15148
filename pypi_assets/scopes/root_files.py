"""Reads the root projects of a scope from a file, whatever kind it is of."""

from pathlib import Path

from pypi_assets.scopes.lock_files import lock_reader
from pypi_assets.scopes.project_files import read_project_file
from pypi_assets.scopes.requirement_files import read_requirements
from pypi_assets.scopes.roots import Roots, RootsError


def read_roots(path: Path) -> Roots:
    """The roots that a file names. Its name shows the kind: pyproject.toml, uv.lock, poetry.lock, pylock.toml or
    pylock.NAME.toml; any other file is in the format of requirements.txt.

    Raises RootsError, which names the file, the line or the key.

        read_roots(Path("requirements.txt")).extras  # {"requests": frozenset({"socks"}), "six": frozenset()}
    """
    read = read_project_file if path.name == "pyproject.toml" else lock_reader(path.name)
    if read is None and path.suffix in {".toml", ".lock"}:
        raise RootsError(
            f"{path}: roots are read from pyproject.toml, uv.lock, poetry.lock, pylock.toml, pylock.NAME.toml, and from"
            " files in the format of requirements.txt"
        )
    return (read or read_requirements)(path)
