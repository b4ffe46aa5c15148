"""Install foreign clients of an index, each into a virtual environment of its own."""

import subprocess
import sys
from pathlib import Path

INSTALLED_WITHIN_S = 1_800.0


def installed(folder: Path, *requirements: str) -> Path:
    """Return the folder with the commands of a new virtual environment with these requirements."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=INSTALLED_WITHIN_S)
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*command, *requirements], capture_output=True, text=True, check=False, timeout=INSTALLED_WITHIN_S
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    return folder / "bin"


def version_of(commands: Path, package: str) -> str:
    """Return the installed version of a package."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    done = subprocess.run([str(commands / "python"), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()
