"""The commands that install the optional requirements of pypi-assets, its extras."""

import json
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from itertools import pairwise
from pathlib import Path

_PIP = "python -m pip install"
_TOOLS = {("pipx", "venvs"): "pipx install --force", ("uv", "tools"): "uv tool install"}
"""Two successive folders in the path of an environment, and the command of the tool that created it."""


def install_command(extra: str, prefix: str = sys.prefix) -> str:
    """Return the command that adds `extra` to the environment `prefix`, which pip, pipx or uv created.

    If pypi-assets was installed from a wheel, a folder or a repository, the command names that place, because an index
    can have another version or another package.
    """
    parts = Path(prefix).parts
    found = (command for folders, command in _TOOLS.items() if folders in pairwise(parts))
    return _command(next(found, _PIP), extra)


def install_commands(extra: str) -> list[str]:
    """Return the command of each tool that installs `extra`, first of pip."""
    return [_command(tool, extra) for tool in (_PIP, *_TOOLS.values())]


def _command(tool: str, extra: str) -> str:
    origin = _origin()
    named = f"pypi-assets[{extra}]"
    return f"{tool} {shlex.quote(named if origin is None else f'{named} @ {origin}')}"


def _origin() -> str | None:
    """Return the URL from which pypi-assets was installed (PEP 610), or None if an index provided it."""
    try:
        text = distribution("pypi-assets").read_text("direct_url.json")
    except PackageNotFoundError:  # it runs in a clone
        return None
    if text is None:
        return None
    found = json.loads(text)
    repository = found.get("vcs_info")
    return f"{repository['vcs']}+{found['url']}@{repository['commit_id']}" if repository else str(found["url"])
