"""Facts in the docs match the code: defaults of settings, versions of tested servers."""

import re
from pathlib import Path

import pytest

from pypi_assets.settings import ENV_PREFIX, Settings

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
UNITS = {"": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "seconds": 1, "s": 1}
UNITS |= {"six hours": 6 * 3600}
NAMED = re.compile(rf"`{ENV_PREFIX}([A-Z_]+)`\s+\((\d[\d,.]*|six hours)(?:\s+(KiB|MiB|GiB|seconds|s)\b)?[);]")


def defaults(name: str) -> set[float]:
    """Return the value of a setting in the code, and the value in deploy/env.example if that file has one."""
    value = Settings.model_fields[name.lower()].default
    deployed = re.findall(rf"(?m)^{ENV_PREFIX}{name}=([\d.]+)$", (ROOT / "deploy" / "env.example").read_text())
    return {float(value), *map(float, deployed)}


def documented(page: Path) -> list[tuple[str, float]]:
    """Return the settings that a page names with a number in brackets.

    Example: [("CLAIM_LEASE_S", 300.0)] for "`PYPI_ASSETS_CLAIM_LEASE_S` (300)".
    """
    return [
        (name, UNITS[number] if number in UNITS else float(number.replace(",", "")) * UNITS[unit])
        for name, number, unit in NAMED.findall(page.read_text(encoding="utf-8"))
    ]


def test_documented_defaults_match_the_code(subtests: pytest.Subtests) -> None:
    found = 0
    for page in PAGES:
        for name, number in documented(page):
            found += 1
            with subtests.test(page=page.name, name=name):
                assert number in defaults(name)
    assert found > 20


def test_documented_server_versions_match_the_pins() -> None:
    text = (ROOT / "docs" / "indexes.md").read_text(encoding="utf-8")
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines())
    named = dict(re.findall(r"(?m)^\| (devpi-server|pypiserver) (\d+\.\d+) \|", text))
    assert named == {name: ".".join(pins[name].split(".")[:2]) for name in ("devpi-server", "pypiserver")}
