"""A broken build: a release gets a second wheel, whose requirements cannot be satisfied."""

import base64
import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

PROJECT, VERSION = "orchard-press", "1.0"
REQUIREMENT = f"{PROJECT}=={VERSION}"
_STEM = PROJECT.replace("-", "_")
FIRST, SECOND = f"{_STEM}-{VERSION}-py3-none-any.whl", f"{_STEM}-{VERSION}-2-py3-none-any.whl"
_REQUIRES = {
    FIRST: ("requests>=2.31", "PyYAML"),
    SECOND: ("requests>=2.31", "PyYAML", "urllib3<1.21"),  # requests needs a newer urllib3
}


def make_wheel(folder: Path, filename: str) -> Path:
    """Write one of the two wheels into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    requires = "".join(f"Requires-Dist: {one}\n" for one in _REQUIRES[filename])
    info = f"{_STEM}-{VERSION}.dist-info"
    build = "Build: 2\n" if filename == SECOND else ""
    members = {
        f"{_STEM}/__init__.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {PROJECT}\nVersion: {VERSION}\n{requires}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: demo\nRoot-Is-Purelib: true\n{build}Tag: py3-none-any\n",
    }
    record = "".join(f"{name},sha256={_digest(text)},{len(text)}\n" for name, text in members.items())
    path = folder / filename
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in {**members, f"{info}/RECORD": f"{record}{info}/RECORD,,\n"}.items():
            wheel.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), text)
    return path


def blamed(good: int, bad: int) -> list[str]:
    """Return the output of `pypi-assets blame` between two serials. End the demo if it blames another event."""
    arguments = ["blame", REQUIREMENT, "--good", str(good), "--bad", str(bad)]
    [change] = json.loads(_run(*arguments, "--json"))["changes"]
    files = [name for event in change["events"] for name in event["filenames"]]
    if files != [SECOND] or change["before"]["pins"] is None or change["after"]["failure"] is None:
        raise SystemExit(f"the wrong event is blamed: {change['events']}")
    return _run(*arguments).splitlines()


def _run(*arguments: str) -> str:
    command = [sys.executable, "-c", "from pypi_assets.cli import main; main()", *arguments]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"pypi-assets {' '.join(arguments)} failed: {result.stderr}")
    return result.stdout


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
