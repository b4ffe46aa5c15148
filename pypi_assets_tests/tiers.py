"""Select the tests of a run: `--tier=quick` runs all quick tests and a share of the others.

Slow tests are marked `nightly`. In `crawl/`, each test on PostgreSQL that also runs on SQLite counts as nightly. A
quick run takes one in SHARE of the nightly tests, drawn by the hash of the test's name and the commit, so that each
commit draws different tests. It also takes all nightly tests of packages that the working tree changes. Without the
option, and in `make nightly`, all tests run.
"""

import hashlib
import subprocess
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePath

import pytest

ROOT = Path(__file__).parent.parent
SHARE = 12
TOP = "."
"""The package of modules at the top of a package tree."""

_PRODUCT, _TESTS = "pypi_assets", "pypi_assets_tests"
_TWINS = "crawl"


@dataclass(frozen=True)
class Draw:
    """The state of the checkout that decides which nightly tests a quick run takes."""

    commit: str
    base: str
    """The name or commit that the working tree is compared with. Empty if there is no history."""
    changed: frozenset[str]
    """The packages that differ from `base`, such as `crawl` and `defs`. TOP stands for modules at the top."""

    def takes(self, group: str) -> bool:
        """Return whether to run a nightly test, given without its parameters, as `crawl/test_kill.py::test_x`."""
        return package_of(group) in self.changed or _number(group, self.commit) % SHARE == 0

    def __str__(self) -> str:
        changed = (
            f", and all of {', '.join(sorted(self.changed))}, which differ from {self.base}" if self.changed else ""
        )
        return f"one in {SHARE}, drawn by {self.commit[:8] or 'no commit'}{changed}"


def package_of(path: str) -> str:
    """Return the package of a path below the package tree: `crawl` of `crawl/test_kill.py::test_x`."""
    first, slash, _ = path.partition("::")[0].partition("/")
    return first if slash else TOP


def changed_packages(paths: Iterable[str]) -> frozenset[str]:
    """Return the packages of changed files: {"crawl"} for ["pypi_assets/crawl/x.py", "README.md"].

    Test helpers belong to no package, because quick tests also fail if a change of them breaks something.
    """
    split = [path.partition("/") for path in paths]
    return frozenset(
        package_of(rest)
        for root, _, rest in split
        if root == _PRODUCT or (root == _TESTS and PurePath(rest).name.startswith("test_"))
    )


def draw(root: Path = ROOT) -> Draw:
    """Return the draw for the state of the checkout. Outside a checkout, the commit is empty."""
    commit = _git(root, "rev-parse", "HEAD")
    base = _git(root, "merge-base", "HEAD", "origin/main")
    name = "origin/main"
    if base in {"", commit}:  # on main itself, only the last commit is new
        base = name = "HEAD~1" if _git(root, "rev-parse", "--verify", "HEAD~1") else ""
    paths = _git(root, "diff", "--name-only", base).splitlines() if base else []
    paths += _git(root, "ls-files", "--others", "--exclude-standard").splitlines()
    return Draw(commit, name, changed_packages(paths))


def group_of(item: pytest.Item) -> str | None:
    """Return the name by which a nightly test is drawn, or None if the test is quick."""
    name = item.nodeid.partition("[")[0].removeprefix("pypi_assets_tests/")
    if item.get_closest_marker("nightly"):
        return name
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    if package_of(name) == _TWINS and "postgresql" in parameters:
        return f"{name}[postgresql]"
    return None


def choose(items: Collection[pytest.Item], drawn: Draw) -> tuple[list[pytest.Item], list[pytest.Item], set[str]]:
    """Return the tests to run, the tests to deselect, and the selected nightly groups."""
    groups = {item: group_of(item) for item in items}
    taken = {group for group in groups.values() if group is not None and drawn.takes(group)}
    selected = [item for item, group in groups.items() if group is None or group in taken]
    return selected, [item for item, group in groups.items() if not (group is None or group in taken)], taken


def order(items: list[pytest.Item], workers: int) -> None:
    """Sort the tests so that each worker begins with nightly tests. A worker gets one part of the list, and later takes
    from the parts of the others.
    """
    nightly = [item for item in items if group_of(item) is not None]
    quick = [item for item in items if group_of(item) is None]
    ends = [len(quick) * number // workers for number in range(workers + 1)]
    items[:] = [
        item
        for number in range(workers)
        for item in (*nightly[number::workers], *quick[ends[number] : ends[number + 1]])
    ]


def _number(group: str, commit: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{commit} {group}".encode()).digest()[:8])


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
