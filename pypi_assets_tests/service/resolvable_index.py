"""An index of real wheels and sdists that require each other. Its history changes what installers choose.

A seed determines it: uploads, yanks, removals and quarantines of projects whose releases have markers, extras,
pre-releases, epochs, local versions, build tags, platforms, and versions that are equal but spelled differently.
"""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from packaging.utils import canonicalize_name

from pypi_assets.devindex.devindex_errors import OperationRefusedError
from pypi_assets.devindex.history import History
from pypi_assets_tests.builders import core_metadata, make_sdist, make_wheel

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = [
    *("Alpha.Pkg", "beta_tools", "Gamma-Core", "delta", "Epsilon", "zeta.eta", "theta-x", "iota", "kappa", "Lambda_1"),
    *("mu", "nu.pkg", "Xi", "omicron", "pi-tools", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"),
]
"""A project requires only those after it."""
SDIST_NAMES = ["source.one", "Source-Two", "source_three", "source4"]
"""Projects that have sdists alone."""
VERSIONS = [
    *("0.1", "0.9.1", "1.0", "1.0.0", "1.0.post1", "1.1", "1.2a1", "1.2rc1", "1.2", "1.10", "2.0.dev3", "2.0b2", "2.0"),
    *("2.0+local.1", "2.1", "3.0", "1!0.5", "1!1.0"),
]
TAGS = [*["py3-none-any"] * 6, "py2.py3-none-any", "cp311-cp311-manylinux_2_17_x86_64", "cp39-cp39-win_amd64"]
PYTHONS = [*[None] * 6, ">=3.8", ">=3.9,<4", ">=3.99", "<3.8", "~=3.11"]
MARKERS = [
    *[""] * 6,
    "; python_version >= '3.8'",
    "; python_version < '3'",
    "; sys_platform == 'win32'",
    "; platform_machine == 'x86_64' or python_full_version < '3'",
    "; extra == 'more'",
    "; extra == 'Odd_Name'",
]
SPECIFIERS = [*[""] * 6, ">=1", "<2", "!=1.0", "~=1.0", ">=1.2a1", "==1.*", "<=2.0", ">=0.5,!=1.1", "===1.0"]
_BACKEND = """
import pathlib

def _write(folder):
    name, version = {name!r}, {version!r}
    info = pathlib.Path(folder, f"{{name}}-{{version}}.dist-info")
    info.mkdir()
    (info / "METADATA").write_text(pathlib.Path("PKG-INFO").read_text())
    (info / "WHEEL").write_text("Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    return info.name

def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    return _write(metadata_directory)

def build_wheel(*_):
    raise NotImplementedError("nothing is installed here")
"""
_HIDING = ["file", "release", "project", "in", "out", "out", "release in", "release out", "archive"]
_PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


@dataclass
class ResolvableIndex:
    """The index. `history` comes from a devindex, and `crawl` follows it. It can be compared at `serials`."""

    folder: Path
    history: History
    crawl: Callable[[], object]
    random: random.Random
    serials: list[int] = field(default_factory=list)
    files: int = 0
    _hours: int = 0

    def fill(self, files: int) -> None:
        """Upload `files` files, mixed with yanks, removals and quarantines."""
        self.folder.mkdir(parents=True, exist_ok=True)
        remaining = [(name, version) for name in NAMES for version in VERSIONS]
        remaining += [(name, version) for name in SDIST_NAMES for version in VERSIONS[:8]]
        self.random.shuffle(remaining)
        while self.files < files and remaining:
            for _ in range(self.random.randint(8, 20)):
                if remaining:
                    self._upload(*remaining.pop())
            for _ in range(3):
                self._do(self._yank)
            self.crawl()  # a file that was removed before any crawl cannot be known
            for _ in range(4):
                self._do(self._hide)
            self.crawl()

    def at(self) -> datetime:
        self._hours += 7
        return BEGAN + timedelta(hours=self._hours)

    def _note(self, serial: int) -> None:
        self.serials.append(serial)

    def _upload(self, name: str, version: str) -> None:
        is_source = name in SDIST_NAMES
        for path in [self._sdist(name, version)] if is_source else self._wheels(name, version):
            own_release = version in {"1.0", "1.0.0"} and self.random.random() < 0.7
            try:
                self._note(self.history.add(path, own_release=own_release, during_quarantine=True, at=self.at()))
                self.files += 1
            except OperationRefusedError:
                continue

    def _requires(self, name: str) -> list[str]:
        later = NAMES[NAMES.index(name) + 1 :] if name in NAMES else NAMES
        chosen = self.random.sample(later, min(len(later), self.random.choice([0, 0, 1, 1, 2, 3])))
        return [self._requirement(each) for each in chosen]

    def _requirement(self, name: str) -> str:
        extras = self.random.choice(["", "", "", "[more]", "[odd-name]"])
        return f"{self._spelled(name)}{extras}{self.random.choice(SPECIFIERS)} {self.random.choice(MARKERS)}".strip()

    def _spelled(self, name: str) -> str:
        return self.random.choice([name, canonicalize_name(name), name.upper()])

    def _wheels(self, name: str, version: str) -> list[Path]:
        tags = self.random.sample(TAGS, self.random.choice([1, 1, 1, 2]))
        return [
            make_wheel(
                self.folder,
                name,
                version,
                tag=tag,
                build=self.random.choice([None, None, None, "1", "2x"]),
                requires_dist=self._requires(name),
                requires_python=self.random.choice(PYTHONS),
                provides_extra=["more", "Odd_Name"],
            )
            for tag in dict.fromkeys(tags)
        ]

    def _sdist(self, name: str, version: str) -> Path:
        escaped = canonicalize_name(name).replace("-", "_")
        requires_python = self.random.choice(PYTHONS)
        info = core_metadata(
            name,
            version,
            metadata_version="2.2",
            requires_dist=self._requires(name),
            requires_python=requires_python,
        )
        files = {"pyproject.toml": _PYPROJECT, "backend.py": _BACKEND.format(name=escaped, version=version)}
        return make_sdist(self.folder, name, version, files=files, pkg_info=info)

    def _do(self, operation: Callable[[], int]) -> None:
        with suppress(OperationRefusedError):
            self._note(operation())

    def _release(self) -> tuple[str, str]:
        projects = [one for one in self.history.state().projects.values() if one.releases]
        project = self.random.choice(projects)
        return project.name, self.random.choice(sorted(project.releases))

    def _yank(self) -> int:
        act = self.random.choice([self.history.yank, self.history.yank, self.history.unyank])
        return act(*self._release(), at=self.at())

    def _hide(self) -> int:
        name, version = self._release()
        history, at = self.history, self.at()
        kind = self.random.choice(_HIDING)
        match kind:
            case "file":
                project = history.state().project(name)
                files = sorted(project.releases[version].files) if project else []
                return history.remove_file(self.random.choice(files or ["none"]), at=at)
            case "release":
                return history.remove_release(name, version, at=at)
            case "project":
                return history.remove_project(name, at=at) if self.random.random() < 0.3 else self._yank()
            case "in":
                return history.quarantine(name, at=at)
            case "out":
                hidden = [one.name for one in history.state().projects.values() if one.status == "quarantined"]
                return history.unquarantine(self.random.choice(sorted(hidden) or [name]), at=at)
            case "release in":
                return history.quarantine_release(name, version, at=at)
            case "release out":
                return history.unquarantine_release(name, version, at=at)
            case _:
                return history.archive(name, at=at)
