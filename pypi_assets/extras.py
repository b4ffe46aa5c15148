"""The commands that install the optional requirements of pypi-assets, its extras."""

import sys
from itertools import pairwise
from pathlib import Path

_PIP = "python -m pip install"
_TOOLS = {("pipx", "venvs"): "pipx install --force", ("uv", "tools"): "uv tool install"}
"""Two successive folders in the path of an environment, and the command of the tool that created it."""


def install_command(extra: str, prefix: str = sys.prefix) -> str:
    """Return the command that adds `extra` to the environment `prefix`, which pip, pipx or uv created.

    >>> install_command("parquet", "/home/me/.local/share/uv/tools/pypi-assets")
    "uv tool install 'pypi-assets[parquet]'"
    """
    parts = Path(prefix).parts
    found = (command for folders, command in _TOOLS.items() if folders in pairwise(parts))
    return _command(next(found, _PIP), extra)


def install_commands(extra: str) -> list[str]:
    """Return the command of each tool that installs `extra`, first of pip."""
    return [_command(tool, extra) for tool in (_PIP, *_TOOLS.values())]


def _command(tool: str, extra: str) -> str:
    return f"{tool} 'pypi-assets[{extra}]'"
