"""Programs of other projects, each in a virtual environment of its own, in the version that pip installs now."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_TIMEOUT_S = 900
_SETTINGS = ("PIP_", "UV_", "POETRY_", "PDM_", "PYTHON", "VIRTUAL_ENV", "XDG_")
"""Prefixes of variables that change what such a program does."""


@dataclass(frozen=True)
class ForeignProgram:
    """A program in the virtual environment `folder`. It runs with `home` as its home, and without other settings."""

    folder: Path
    home: Path
    settings: Mapping[str, str] = field(default_factory=dict)

    def command(self, script: str) -> list[object]:
        """Return the command of one of its scripts."""
        return [self.folder / "bin" / script]

    def run(self, script: str, *arguments: object, cwd: Path | None = None, status: int = 0) -> str:
        """Run a script, which must end with `status`, and return what it printed."""
        command = [str(part) for part in (*self.command(script), *arguments)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_SETTINGS)}
        environment |= {"HOME": str(self.home), "NO_PROXY": "*", "no_proxy": "*", "PIP_CONFIG_FILE": os.devnull}
        environment |= {"PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", **self.settings}
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
            cwd=cwd or self.home,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def installed_program(folder: Path, *requirements: str, settings: Mapping[str, str] | None = None) -> ForeignProgram:
    """Install these requirements into a new virtual environment below `folder`, by the pip of this machine."""
    home = folder / "home"
    home.mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "venv", folder / "environment"], check=True, timeout=_TIMEOUT_S)
    pip = [folder / "environment" / "bin" / "python", "-m", "pip", "install", "--quiet", "--upgrade"]
    done = subprocess.run([*pip, *requirements], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr
    return ForeignProgram(folder / "environment", home, settings or {})
