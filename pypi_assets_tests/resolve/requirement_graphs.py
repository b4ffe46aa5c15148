"""Draws requirement graphs on which resolvers can differ, and requirement sets to resolve in them.

Everything follows from a seed. A release requires releases of a similar age, in ranges of random width. So most sets
have a solution, many only after several levels of backtracking, and a few have none.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from pypi_assets.devindex.devindex_errors import OperationRefusedError
from pypi_assets.devindex.history import History
from pypi_assets_tests.builders import make_sdist, make_wheel

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of the first upload. Each later event is an hour after the one before."""
NEIGHBOURS = 30
"""The number of projects that can require each other. Projects of other neighbourhoods are never required."""
_REACH = 14
_EXTRAS = ("fast", "Odd_Name", "test")
_NO_EXTRA = "never-provided"
_PURE = "py3-none-any"
_FLOORS = [None, None, None, ">=3.8", ">=3.10", ">=3.10", ">=3.11", ">=3.12"]
"""The Requires-Python of a project from some release on."""
_ODD_PYTHONS = ["<3.13", ">=3.9,<3.12", "!=3.12.*", "~=3.10", ">=3.99", ">3.10"]
"""The Requires-Python of single releases."""
_TAGS = [
    *["cp310-cp310", "cp311-cp311", "cp312-cp312", "cp313-cp313", "cp39-abi3", "py3-none"],
]
_PLATFORMS = [
    *["manylinux_2_17_x86_64.manylinux2014_x86_64"] * 4,
    *["macosx_11_0_arm64"] * 2,
    *["win_amd64"] * 3,
    *("macosx_10_9_universal2", "macosx_14_0_arm64", "macosx_15_0_arm64", "musllinux_1_2_x86_64"),
    *("manylinux_2_28_x86_64", "manylinux_2_99_x86_64", "manylinux_2_17_aarch64", "any"),
]
_MARKERS = [
    "python_version >= '3.11'",
    "python_version < '3.12'",
    "python_full_version < '3.11.1'",
    "python_version == '3.12' or python_version == '3.10'",
    "python_version in '3.10 3.13'",
    "sys_platform == 'win32'",
    "sys_platform != 'darwin'",
    "platform_system == 'Linux' and python_version >= '3.11'",
    "platform_machine == 'x86_64' or os_name == 'nt'",
    "(sys_platform == 'darwin' or sys_platform == 'win32') and python_version < '3.13'",
    "implementation_name == 'cpython' and platform_python_implementation != 'PyPy'",
    "'linux' in sys_platform",
    "python_version < '3'",
]
_VERSIONS = {
    "plain": ("0.1 0.2 0.9.1 1.0 1.0.1 1.1 1.2 1.10 2.0 2.0.1 2.1 2.2 3.0 3.1", 60),
    "calendar": ("2019.1 2020.4.2 2021.1 2022.10 2023.1.1 2024.5 2025.2 2025.10 2026.1", 6),
    "mixed": ("0.9 1.0a1 1.0rc2 1.0 1.1b1 1.1 1.2.dev4 1.2 2.0a1 2.0b1 2.0 2.1rc1 3.0.dev1 3.0a2", 14),
    "prereleases": ("0.1a1 0.1b2 0.2.dev1 0.2rc1 1.0a1 1.0b1", 4),
    "epochs": ("1.0 2020.1 2021.3 1!0.1 1!0.5 1!1.0 1!1.1rc1 1!1.1", 4),
    "locals": ("1.0 1.0+cpu 1.1 1.1+cu.12 1.1+cu.2 1.2+only 2.0 2.0+abc", 4),
    "posts": ("0.5 0.5.post1 1.0 1.0.post1 1.0.post2.dev1 1.1 1.1.post1 2.0 2.0.post3", 6),
    "spelled": ("0.1 0.2 1.0 1.0.0 1.2.0 1.3.00 2", 2),
}
"""The possible versions of each kind of project, and the percentage of projects of this kind."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file to build. `kind` is `wheel` or `sdist`."""

    name: str
    version: str
    kind: str = "wheel"
    tag: str = _PURE
    build: str | None = None
    requires_dist: tuple[str, ...] = ()
    requires_python: str | None = None
    provides_extra: tuple[str, ...] = ()

    def make(self, folder: Path) -> Path:
        """Build the file below `folder`."""
        if self.kind == "sdist":
            return make_sdist(folder, self.name, self.version)
        return make_wheel(
            folder,
            self.name,
            self.version,
            files={},
            tag=self.tag,
            build=self.build,
            requires_dist=self.requires_dist,
            requires_python=self.requires_python,
            provides_extra=self.provides_extra,
        )


@dataclass(frozen=True, slots=True)
class Sketch:
    """A project before it has files, with ascending versions."""

    name: str
    versions: tuple[str, ...]
    extras: tuple[str, ...]
    has_platforms: bool


@dataclass(frozen=True, slots=True)
class RequirementSet:
    """Requirements to resolve at a serial."""

    requirements: tuple[str, ...]
    serial: int
    constraints: tuple[str, ...] = ()
    prereleases: bool = False
    uploaded_before: datetime | None = None


@dataclass
class RequirementGraph:
    """Projects that require each other, drawn from `random`."""

    random: random.Random
    sketches: list[Sketch] = field(default_factory=list)

    @classmethod
    def drawn(cls, projects: int, drawn: random.Random) -> "RequirementGraph":
        """Return a graph of `projects` projects."""
        graph = cls(drawn)
        graph.sketches = [graph._sketch(number) for number in range(projects)]
        return graph

    def uploads(self) -> list[list[Upload]]:
        """Return the files of each release, with releases in upload order, which is roughly version order."""
        releases = []
        for place, sketch in enumerate(self.sketches):
            floor: str | None = None
            for number, version in enumerate(sketch.versions):
                along = number / max(len(sketch.versions) - 1, 1)
                floor = self.random.choice(_FLOORS) if self.random.random() < 0.08 else floor
                python = self.random.choice(_ODD_PYTHONS) if self.random.random() < 0.04 else floor
                order = along + self.random.uniform(-0.15, 0.15)
                releases.append((order, place, number, self._release(place, version, along, python)))
        return [files for *_, files in sorted(releases, key=lambda release: release[:3])]

    def requirement_set(self, serials: Mapping[int, float], until: datetime) -> RequirementSet:
        """Return requirements of one neighbourhood at one of the serials.

        `serials` maps each serial to the share of releases uploaded by then. `until` is the time of the last event.
        """
        serial = self.random.choice(list(serials))
        place = self.random.randrange(len(self.sketches)) // NEIGHBOURS * NEIGHBOURS
        near = range(place, min(place + NEIGHBOURS, len(self.sketches)))
        wanted = self.random.sample(near, min(len(near), self.random.choice([1, 1, 2, 2, 2, 3, 3, 4, 5])))
        newest = serials[serial] * self.random.choice([1.0, 1.0, 0.9, 0.8, 0.5])
        requirements = [self._requirement(each, newest, marker_share=0.05) for each in wanted]
        if self.random.random() < 0.05:
            requirements.append(self._requirement(wanted[0], newest))
        constraints: list[str] = []
        if self.random.random() < 0.15:
            others = self.random.sample(near, min(len(near), 4))
            constraints = [self._constraint(each, newest) for each in others]
        hours = int((until - BEGAN) / timedelta(hours=1) * self.random.uniform(0.5, 1))
        return RequirementSet(
            tuple(requirements),
            serial,
            tuple(constraints),
            prereleases=self.random.random() < 0.06,
            uploaded_before=BEGAN + timedelta(hours=hours) if self.random.random() < 0.08 else None,
        )

    def _sketch(self, number: int) -> Sketch:
        kinds = list(_VERSIONS)
        [kind] = self.random.choices(kinds, [weight for _, weight in _VERSIONS.values()])
        texts = _VERSIONS[kind][0].split()
        kept = sorted(self.random.sample(range(len(texts)), self.random.randint(min(3, len(texts)), len(texts))))
        extras = tuple(self.random.sample(_EXTRAS, self.random.choice([0, 0, 1, 2, 3])))
        name = self.random.choice(["Pkg{}", "pkg-{}", "pkg_{}", "Pkg.{}"]).format(f"{number // NEIGHBOURS}x{number}")
        versions = tuple(texts[each] for each in kept)
        return Sketch(name, versions, extras, has_platforms=self.random.random() < 0.12)

    def _release(self, place: int, version: str, along: float, requires_python: str | None) -> list[Upload]:
        sketch = self.sketches[place]
        if self.random.random() < 0.02:
            return [Upload(sketch.name, version, "sdist")]
        tags = [_PURE]
        if sketch.has_platforms:
            combined = [f"{tag}-{platform}" for tag in _TAGS for platform in _PLATFORMS]
            tags = list(dict.fromkeys(self.random.sample(combined, self.random.randint(2, 5))))
            tags += [_PURE] * (self.random.random() < 0.5)
        provided = (*sketch.extras, *(["all"] if len(sketch.extras) > 1 else []))
        requires = self._requires_dist(place, along)
        uploads = []
        for tag in tags:
            if tag != tags[0] and self.random.random() < 0.1:
                requires = self._requires_dist(place, along)
            build = self.random.choice(["1", "2x"]) if self.random.random() < 0.04 else None
            uploads.append(Upload(sketch.name, version, "wheel", tag, build, requires, requires_python, provided))
        return uploads

    def _requires_dist(self, place: int, along: float) -> tuple[str, ...]:
        sketch, first = self.sketches[place], place // NEIGHBOURS * NEIGHBOURS
        later = range(place + 1, min(place + 1 + _REACH, first + NEIGHBOURS, len(self.sketches)))
        chosen = self.random.sample(later, min(len(later), self.random.choice([0, 1, 1, 2, 2, 3])))
        if self.random.random() < 0.03:
            chosen.append(self.random.randrange(first, place + 1))  # a cycle or a self-reference
        requirements = [self._requirement(each, along, marker_share=0.2) for each in chosen]
        if self.random.random() < 0.006:
            requirements.append(f"never-uploaded-{place}")
        for extra in sketch.extras:
            more = self.random.sample(later, min(len(later), self.random.choice([0, 1, 2])))
            requirements += [self._requirement(each, along, marker_share=0.2, extra=extra) for each in more]
        if len(sketch.extras) > 1:
            named = ",".join(self.random.sample(sketch.extras, self.random.randint(1, len(sketch.extras))))
            requirements.append(f"{self._spelled(sketch.name)}[{named}]; extra == 'all'")
        return tuple(requirements)

    def _requirement(self, place: int, along: float, *, marker_share: float = 0.0, extra: str | None = None) -> str:
        sketch = self.sketches[place]
        extras = ""
        if self.random.random() < 0.2:
            offered = [*sketch.extras, "all" if len(sketch.extras) > 1 else _NO_EXTRA, _NO_EXTRA]
            extras = "[" + ",".join(self.random.sample(offered, self.random.choice([1, 1, 2]))) + "]"
        marker = self.random.choice(_MARKERS) if self.random.random() < marker_share else ""
        if extra is not None:
            wanted = f"extra == '{self.random.choice([extra, canonicalize_name(extra)])}'"
            marker = f"({marker}) and {wanted}" if marker else wanted
        text = f"{self._spelled(sketch.name)}{extras}{self._specifier(sketch.versions, along)}"
        return f"{text}; {marker}" if marker else text

    def _constraint(self, place: int, along: float) -> str:
        sketch = self.sketches[place]
        marker = f"; {self.random.choice(_MARKERS)}" if self.random.random() < 0.2 else ""
        return f"{self._spelled(sketch.name)}{self._specifier(sketch.versions, along) or '>=0'}{marker}"

    def _spelled(self, name: str) -> str:
        return self.random.choice([name, name, canonicalize_name(name), name.upper()])

    def _specifier(self, texts: Sequence[str], along: float) -> str:
        """Return a specifier that a version of about this age usually satisfies."""
        versions = sorted(map(Version, texts))
        near = round(along * (len(versions) - 1) + self.random.gauss(0, 1))
        near = min(max(near, 0), len(versions) - 1)
        low, high = max(near - self.random.randint(1, 6), 0), near + self.random.randint(1, 5)
        middle, lower = versions[near], versions[low]
        above = f"<{versions[high].public}" if high < len(versions) else "<99" if not lower.epoch else "<2!0"
        drawn: Mapping[str, Callable[[], str]] = {
            "": lambda: "",
            "at least": lambda: f">={lower.public}",
            "between": lambda: f">={lower.public},{above}",
            "below": lambda: above,
            "at most": lambda: f"<={middle.public}",
            "above": lambda: f">{lower.public}" if low < near else f">={lower.public}",
            "compatible": lambda: f"~={_with_minor(lower)}",
            "pinned": lambda: f"=={middle}",
            "public pin": lambda: f"=={middle.public}",
            "series": lambda: f"=={_series(middle)}.*",
            "not": lambda: f"!={versions[-1]}",
            "at least, not": lambda: f">={lower.public}, !={middle}",
            "not the series": lambda: f"!={_series(versions[-1])}.*",
            "same text": lambda: f"==={middle}",
            "pre-release": lambda: f">={_release(lower)}a1",
            "pre-releases between": lambda: f">={_release(lower)}.dev0,{above}",
            "below a pre-release": lambda: f"<{_release(versions[-1])}rc1",
            "brackets": lambda: f" ( >= {lower.public} )",
        }
        weights = [22, 24, 15, 4, 3, 3, 6, 2.5, 1.5, 4, 4, 3, 1, 0.4, 1.2, 0.8, 1, 1]
        [kind] = self.random.choices(list(drawn), weights)
        return drawn[kind]()


def _release(version: Version) -> str:
    return f"{version.epoch}!{version.base_version.partition('!')[2]}" if version.epoch else version.base_version


def _with_minor(version: Version) -> str:
    release = _release(version)
    return release if len(version.release) > 1 else f"{release}.0"


def _series(version: Version) -> str:
    epoch = f"{version.epoch}!" if version.epoch else ""
    return f"{epoch}{version.release[0]}"


@dataclass
class GraphHistory:
    """Uploads a graph into the history of a devindex, with yanks, removals and quarantines.

    `crawl` follows the index: releases removed before a crawl can never be known. `serials` maps each serial to resolve
    at to the share of releases uploaded by then.
    """

    folder: Path
    history: History
    crawl: Callable[[], object]
    random: random.Random
    serials: dict[int, float] = field(default_factory=dict)
    files: int = 0
    _hours: int = 0

    @property
    def now(self) -> datetime:
        """Return the time of the last event."""
        return BEGAN + timedelta(hours=self._hours)

    def fill(self, releases: Sequence[Sequence[Upload]], rounds: int) -> None:
        """Upload everything in `rounds` rounds. The serials come from the second half."""
        self.folder.mkdir(parents=True, exist_ok=True)
        share = -(-len(releases) // rounds)
        for number in range(rounds):
            for files in releases[number * share : (number + 1) * share]:
                self._upload(files)
            self.crawl()
            changed = [self._change() for _ in range(max(share // 15, 2))]
            self.crawl()
            if number >= rounds // 2:
                self.serials |= dict.fromkeys((changed[0], changed[-1]), (number + 1) / rounds)

    def add(self, path: Path, *, own_release: bool = False) -> None:
        """Upload the file at `path`."""
        self.history.add(path, own_release=own_release, during_quarantine=True, at=self._at())
        self.files += 1

    def _upload(self, files: Sequence[Upload]) -> None:
        for upload in files:
            with suppress(OperationRefusedError):  # the project was deleted, or another spelling of it has the file
                self.add(upload.make(self.folder), own_release=upload.version in {"1.0", "1.0.0"})

    def _at(self) -> datetime:
        self._hours += 1
        return self.now

    def _change(self) -> int:
        history, drawn, at = self.history, self.random, self._at()
        project = drawn.choice([project for project in history.state().projects.values() if project.releases])
        release = drawn.choice(list(project.releases.values()))
        name, version = project.name, release.version
        hidden = [project.name for project in history.state().projects.values() if project.status == "quarantined"]
        kinds = ["yank", "unyank", "file", "release", "project", "in", "out", "release in", "release out"]
        with suppress(OperationRefusedError):
            match drawn.choices(kinds, [14, 2, 3, 3, 0.2, 1, 2, 2, 1])[0]:
                case "yank":
                    return history.yank(name, version, drawn.choice([None, "broken"]), at=at)
                case "unyank":
                    return history.unyank(name, version, at=at)
                case "file":
                    return history.remove_file(drawn.choice(sorted(release.files) or ["none"]), at=at)
                case "release":
                    return history.remove_release(name, version, at=at)
                case "project":
                    return history.remove_project(name, at=at)
                case "in":
                    return history.quarantine(name, at=at)
                case "out":
                    return history.unquarantine(drawn.choice(hidden or [name]), at=at)
                case "release in":
                    return history.quarantine_release(name, version, at=at)
                case _:
                    return history.unquarantine_release(name, version, at=at)
        return history.state().last_serial or 0
