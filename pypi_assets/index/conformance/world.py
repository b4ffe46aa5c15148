"""A small index whose history the checks script: projects, real files, and a log of events with serials."""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename


@dataclass(frozen=True, slots=True)
class WorldFile:
    """A file: its release, its bytes, and the reason if it is yanked (None: it is not yanked)."""

    filename: str
    version: str
    content: bytes
    yanked: str | None = None

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


@dataclass(frozen=True, slots=True)
class WorldEvent:
    """One event of the log, with the project's display name and an action as in PyPI's changelog."""

    serial: int
    name: str
    version: str | None
    action: str


@dataclass
class World:
    """The present state of the scripted index, and the events that led to it.

    An adapter's `answer` renders it as the API of its server would. `projects` has the files of each project by
    filename, by display name. `page_size` is the most entries of one answer, for an API with pages. An API without a
    log ignores `log`.

        world = World()
        world.add("Demo.Pkg", "1.0")
        assert [file.filename for file in world.files("demo-pkg").values()] == ["demo_pkg-1.0.tar.gz"]
    """

    projects: dict[str, dict[str, WorldFile]] = field(default_factory=dict)
    page_size: int = 5
    log: list[WorldEvent] = field(default_factory=list)

    def files(self, project: str) -> Mapping[str, WorldFile] | None:
        """Return the files of a project by filename, or None if there is no such project. Any spelling will do."""
        name = canonicalize_name(project)
        return next((files for display, files in self.projects.items() if canonicalize_name(display) == name), None)

    def file(self, project: str, filename: str) -> WorldFile | None:
        """Return a file, or None if it does not exist."""
        return (self.files(project) or {}).get(filename)

    def live(self) -> dict[str, set[str]]:
        """Return the filenames of each project with files, by normalized name."""
        return {canonicalize_name(name): set(files) for name, files in self.projects.items() if files}

    def add(self, name: str, version: str) -> str:
        """Upload an sdist, and return its filename."""
        filename = f"{canonicalize_name(name).replace('-', '_')}-{version}.tar.gz"
        self.put(name, WorldFile(filename, version, sdist(name, version)))
        return filename

    def put(self, name: str, file: WorldFile) -> None:
        """Upload a file."""
        if name not in self.projects:
            self.projects[name] = {}
            self._log(name, None, "create")
        self.projects[name][file.filename] = file
        self._log(name, file.version, f"add source file {file.filename}")

    def overwrite(self, name: str, filename: str) -> None:
        """Replace the bytes of a file."""
        file = self.projects[name][filename]
        self.projects[name][filename] = replace(file, content=sdist(name, file.version, file.content.hex()[-8:]))
        self._log(name, file.version, f"add source file {filename}")

    def yank(self, name: str, version: str, reason: str | None) -> None:
        """Yank all files of a release with this reason, or unyank them if the reason is None."""
        for filename, file in self.projects[name].items():
            if file.version == version:
                self.projects[name][filename] = replace(file, yanked=reason)
        self._log(name, version, "unyank release" if reason is None else "yank release")

    def remove_file(self, name: str, filename: str) -> None:
        """Remove a file."""
        file = self.projects[name].pop(filename)
        self._log(name, file.version, f"remove file {filename}")

    def remove_project(self, name: str) -> None:
        """Remove a project with its files."""
        del self.projects[name]
        self._log(name, None, "remove project")

    def _log(self, name: str, version: str | None, action: str) -> None:
        self.log.append(WorldEvent(len(self.log) + 1, name, version, action))


def world_of(folder: Path) -> World:
    """Return the wheels and sdists of a folder as a world. Raises InvalidFilename of `packaging` for another file."""
    world = World()
    for path in sorted(folder.iterdir()):
        if path.suffix == ".whl":
            name, version, *_ = parse_wheel_filename(path.name)
        else:
            name, version = parse_sdist_filename(path.name)
        world.put(name, WorldFile(path.name, str(version), path.read_bytes()))
    return world


def sdist(name: str, version: str, text: str = "") -> bytes:
    """Return the bytes of a small sdist. They depend only on the arguments."""
    top = f"{canonicalize_name(name).replace('-', '_')}-{version}"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {text or 'an example'}\n".encode()
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo(f"{top}/PKG-INFO")
        member.size = len(metadata)
        archive.addfile(member, io.BytesIO(metadata))
    return gzip.compress(packed.getvalue(), mtime=0)
