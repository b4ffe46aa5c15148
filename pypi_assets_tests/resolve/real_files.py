"""Requirements of real wheels: copies without code are uploaded, and requirement sets drawn from them."""

import random
import zipfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from packaging.metadata import parse_email
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import Version

from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.resolve.requirement_graphs import GraphHistory, RequirementSet


@dataclass
class RealFiles:
    """Uploaded files: versions and extras of each project, and the serial after the last upload."""

    versions: defaultdict[str, list[Version]] = field(default_factory=lambda: defaultdict(list))
    extras: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    serial: int = 0

    def upload(self, wheels: Sequence[Path], history: GraphHistory) -> None:
        """Upload a copy of each wheel with its METADATA and without code."""
        for path in wheels:
            name, version, *_ = parse_wheel_filename(path.name)
            metadata = _metadata(path)
            history.add(make_wheel(history.folder, name, str(version), files={}, metadata=metadata, filename=path.name))
            self.versions[name].append(version)
            self.extras[name] |= set(parse_email(metadata)[0].get("provides_extra", []))
        history.crawl()
        self.serial = history.history.state().last_serial or 0

    def requirement_set(self, drawn: random.Random) -> RequirementSet:
        """Return a few of the projects, some with an extra or a range."""
        wanted = drawn.sample(sorted(self.versions), min(len(self.versions), drawn.choice([1, 1, 2, 3, 5, 8])))
        return RequirementSet(tuple(self._requirement(name, drawn) for name in wanted), self.serial)

    def _requirement(self, name: str, drawn: random.Random) -> str:
        extras = sorted(self.extras[name])
        extra = f"[{drawn.choice(extras)}]" if extras and drawn.random() < 0.3 else ""
        version = drawn.choice(self.versions[name])
        ranges = ["", "", "", f">={version}", f"=={version}", f"<={version}", f"<{version}", f"~={version.major}.0"]
        weights = [6, 6, 6, 4, 1, 1, 0.3, 1]
        return f"{canonicalize_name(name)}{extra}{drawn.choices(ranges, weights)[0]}"


def _metadata(path: Path) -> bytes:
    with zipfile.ZipFile(path) as wheel:
        [member] = [name for name in wheel.namelist() if name.count("/") == 1 and name.endswith(".dist-info/METADATA")]
        return wheel.read(member)
