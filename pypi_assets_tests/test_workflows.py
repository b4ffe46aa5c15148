"""The workflows in .github/ use pinned actions, minimal permissions, and existing make targets."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}")


def jobs(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())["jobs"]
    return found


def values_of_steps(key: str) -> list[str]:
    return [step[key] for path in WORKFLOWS for job in jobs(path).values() for step in job["steps"] if key in step]


def test_actions_are_pinned_by_commit() -> None:
    used = [
        step["uses"] for path in WORKFLOWS for job in jobs(path).values() for step in job["steps"] if "uses" in step
    ]
    assert len(used) >= len(WORKFLOWS)
    assert [action for action in used if not PINNED.fullmatch(action)] == []


def test_permissions_are_granted_per_job() -> None:
    for path in WORKFLOWS:
        assert yaml.safe_load(path.read_text())["permissions"] == {}, path.name
        for name, job in jobs(path).items():
            assert job["permissions"], f"{path.name}: {name}"
            assert job["timeout-minutes"] < 360, f"{path.name}: {name}"


def test_make_targets_of_workflows_exist() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    called = {target for command in values_of_steps("run") for target in re.findall(r"\bmake ([\w-]+)", command)}
    assert called >= {"docs", "nightly", "test", "rebuild-release"}
    assert called <= targets


def test_security_check_of_workflows_finds_nothing() -> None:
    program = shutil.which("zizmor", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("zizmor is not installed: make workflows")
    done = subprocess.run(
        [program, "--offline", "--quiet", ROOT / ".github"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
