"""The pinned versions support every Python that the project supports, not only the one they were pinned with."""

import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parent.parent
PINS = [Requirement(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if line]


def test_every_pin_admits_the_oldest_python() -> None:
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    oldest = f"{required.removeprefix('>=')}.0"
    too_new, looked_at = [], 0
    for pin in PINS:
        try:
            installed = distribution(pin.name)
        except PackageNotFoundError:  # of another platform
            continue
        if installed.version in pin.specifier:
            looked_at += 1
            if oldest not in SpecifierSet(installed.metadata.get("Requires-Python") or ""):
                too_new.append(f"{pin} requires Python {installed.metadata['Requires-Python']}")
    assert not too_new
    assert looked_at > len(PINS) // 2
