"""Resolve requirements with the real pip and uv: they return pins, or report an unsolvable set of requirements."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import uv
from packaging.utils import canonicalize_name

from pypi_assets_tests.service.forked_pip import ForkedPip

UV = Path(uv.__file__).parents[4] / "bin" / "uv"
_NO_SOLUTION = {"uv": ("No solution found",), "pip": ("ResolutionImpossible", "No matching distribution found")}
_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class Answer:
    """An installer's result: the version by normalized name, or None if it failed, and its output."""

    pins: Mapping[str, str] | None
    printed: str
    installer: str

    @property
    def has_no_solution(self) -> bool:
        """Check whether the installer reports unsolvable requirements. Without pins, anything else is a failure."""
        return self.pins is None and any(text in self.printed for text in _NO_SOLUTION[self.installer])


def resolve_by_uv(
    index_url: str, requirements: Sequence[str], folder: Path, options: Sequence[str] = (), *, builds: bool = False
) -> Answer:
    """Return the result of `uv pip compile` for the running Python, or for the Python in `options`.

    Sdists are used only if `builds` is set.
    """
    command = [str(UV), "pip", "compile", "-", f"--index-url={index_url}", "--no-config", "--no-header"]
    command += ["--no-annotate", f"--python={sys.executable}", *options, *([] if builds else ["--no-build"])]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("UV_", "PIP_"))}
    found = subprocess.run(
        command,
        input="\n".join(requirements),
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
        # uv assumes macOS 13 for a platform without a version
        env={**kept, "NO_PROXY": "*", "MACOSX_DEPLOYMENT_TARGET": "14.0"},
        cwd=folder,
    )
    if found.returncode:
        return Answer(None, found.stderr, "uv")
    lines = (line.partition(";")[0].strip() for line in found.stdout.splitlines() if "==" in line)
    pins = {canonicalize_name(name): version for name, version in (line.split("==", 1) for line in lines)}
    return Answer(pins, found.stderr, "uv")


def resolve_by_pip(
    pip: ForkedPip, index_url: str, requirements: Sequence[str], folder: Path, options: Sequence[str]
) -> Answer:
    """Return what `pip install` would install in the running Python. Write its report to `folder / "report.json"`."""
    report, wanted = folder / "report.json", folder / "requirements.txt"
    report.unlink(missing_ok=True)
    wanted.write_text("\n".join(requirements) + "\n")
    arguments = ["install", "--dry-run", "--ignore-installed", "--no-cache-dir", "--disable-pip-version-check"]
    arguments += ["--no-input", "--retries=0", f"--index-url={index_url}", f"--report={report}", "-r", str(wanted)]
    code, printed = pip.run([*arguments, *options])
    if code:
        return Answer(None, printed, "pip")
    installed = json.loads(report.read_text())["install"]
    pins = {canonicalize_name(one["metadata"]["name"]): one["metadata"]["version"] for one in installed}
    return Answer(pins, printed, "pip")
