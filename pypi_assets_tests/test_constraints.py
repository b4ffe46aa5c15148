"""The pinned versions support every Python that the project supports."""

import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parent.parent
PINS = [Requirement(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if line]


def direct_requirements() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    return [Requirement(line) for lines in (project["dependencies"], *extras) for line in lines]


def installed_on(name: str, pythons: list[str]) -> list[str]:
    """Return the Pythons on which this platform installs the package: all, unless markers exclude some."""
    markers = [one.marker for one in direct_requirements() if one.name == name]
    if not markers or None in markers:
        return pythons
    return [
        python
        for python in pythons
        if any(marker.evaluate({"python_version": python.removesuffix(".0")}) for marker in markers if marker)
    ]


def test_pins_support_every_python_of_the_project() -> None:
    required = SpecifierSet(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"])
    pythons = [f"3.{minor}.0" for minor in range(9, 20) if f"3.{minor}.0" in required]
    assert len(pythons) > 1
    refused, looked_at = [], 0
    for pin in PINS:
        try:
            installed = distribution(pin.name)
        except PackageNotFoundError:  # the package is for another platform
            continue
        if installed.version in pin.specifier:
            looked_at += 1
            admitted = SpecifierSet(installed.metadata.get("Requires-Python") or "")
            if not all(python in admitted for python in installed_on(pin.name, pythons)):
                refused.append(f"{pin} requires Python {admitted}")
    assert not refused
    assert looked_at > len(PINS) // 2
