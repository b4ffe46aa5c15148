"""A generated index in which thousands of projects contain modules of other owners, for ranking owners.

Its generation is independent of the criteria by which owners are ranked. It imitates people: they write packages, fork
them, vendor copies, squat on names, package their tests by accident, and write requirements, including wrong ones. The
requirements are drawn at random, and only the datasets count them. So an owner that no project requires can lose to a
fork, as in reality.

- The owners are the projects of `corpora/import_names.csv`. They are well known, so their popularity is log-normal
  around
  a high median, which grows with the number of other projects that have their import. Still, one in eight is not
  required.
- The rivals of an import come from `corpora/import_rivals.txt`: real names of real projects, up to `MOST_RIVALS`. It is
  drawn at random whether a rival is a fork, a predecessor, or contains a copy. Imports of more than `MOST_SHARED`
  others
  are omitted: they are namespaces like `Products`, or words like `agents`, and have no single owner.
- The tables omit imports with the name of their project. So 1,000 such owners are made up, with their own rivals.
- All other projects are fillers. Nine in ten of them are not required, and one in seven contains `tests`, `docs` or the
  like.
"""

import csv
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from random import Random

from packaging.utils import canonicalize_name

from pypi_assets.catalog.publications.dump_columns import COLUMNS
from pypi_assets.dumps.dump_format import Row

CORPORA = Path(__file__).parent / "corpora"
SERIAL = 1_000_000
PROJECTS = 35_000
MOST_RIVALS = 12
MOST_SHARED = 40
NAMESAKES = 1_000
_JUNK = ("tests", "tests", "tests", "tests", "docs", "examples", "test", "scripts", "src", "benchmarks", "utils")
_REQUIREMENTS = 6.0
"""The average number of projects that a project requires, including extras, as in real_lists.json.gz."""
_MISTAKEN = 0.03
"""The share of requirements that name the project with the import's name, if there is one, instead of the owner."""
_SQUATS, _SQUATS_OF_UNKNOWN, _KNOWN = 0.6, 0.05, 10.0
"""The probability that somebody has registered the import's name, if it is not the owner's. It depends on the weight,
because well-known names are registered more often.
"""


@dataclass(frozen=True)
class Truth:
    """An import and the project that owns it. `others` are named by other tables, and also count as right."""

    module: str
    project: str
    others: tuple[str, ...]

    @property
    def right(self) -> frozenset[str]:
        return frozenset(map(canonicalize_name, (self.project, *self.others)))

    @property
    def is_held_out(self) -> bool:
        """Check whether the import is held out. Half of the imports are, by a hash; no weight was chosen with them."""
        return hashlib.sha256(self.module.encode()).digest()[0] % 2 == 1


@dataclass
class Project:
    """A project. `modules` are the modules of each release, the oldest first. `weight` is its share of the
    requirements.
    """

    name: str
    born: int
    weight: float
    modules: list[list[str]]
    mistaken_for: str | None = None
    requires: set[str] = field(default_factory=set)

    @property
    def normalized(self) -> str:
        return str(canonicalize_name(self.name))


def read_truths() -> list[Truth]:
    """Return the imports in the best-known tables, which people have written."""
    lines = (CORPORA / "import_rivals.txt").read_text().splitlines()
    shared = {parts[0] for line in lines if not line.startswith("#") and int((parts := line.split())[1]) > MOST_SHARED}
    with (CORPORA / "import_names.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["import"] not in shared]
    return [Truth(row["import"], row["project"], _others(row["note"])) for row in rows]


def namesakes(count: int = NAMESAKES) -> list[Truth]:
    """Return made-up imports with the names of their projects."""
    return [Truth(f"namesake_{number}", f"namesake-{number}", ()) for number in range(count)]


def _others(note: str) -> tuple[str, ...]:
    also = [part.removeprefix("also ") for part in note.split("; ") if part.startswith("also ")]
    return tuple(also[0].split(", ")) if also else ()


def read_rivals() -> dict[str, list[str]]:
    """Return the names of other projects that have also had each import."""
    lines = (CORPORA / "import_rivals.txt").read_text().splitlines()
    return {parts[0]: parts[2:] for line in lines if not line.startswith("#") and (parts := line.split())}


def generate(count: int = PROJECTS, seed: int = 0, known: Sequence[Truth] | None = None) -> list[Project]:
    """Generate the projects of the index: at least the projects for the imports `known`, or of all tables if it is
    None.
    """
    truths = [*(read_truths() if known is None else known), *namesakes(min(NAMESAKES, count // 4))]
    rivals = read_rivals()
    projects: dict[str, Project] = {}
    taken = {name for truth in truths for name in truth.right}
    for truth in truths:
        _add_owner(projects, truth, len(rivals.get(truth.module, [])), Random(f"{seed}/{truth.module}"))
    for truth in truths:
        draw = Random(f"{seed}/{truth.module}/rivals")
        owner = projects[canonicalize_name(truth.project)]
        for name in rivals.get(truth.module, _made_up_rivals(truth.module, draw))[:MOST_RIVALS]:
            if canonicalize_name(name) not in taken:
                _add_rival(projects, truth.module, owner, name, draw)
        squat = truth.module.partition(".")[0]
        is_free = squat[0].isalnum() and canonicalize_name(squat) not in projects.keys() | taken
        if is_free and draw.random() < (_SQUATS if owner.weight > _KNOWN else _SQUATS_OF_UNKNOWN):
            _add_squat(projects, truth.module, owner, squat, draw)
    number = 0
    while len(projects) < count:
        _add_filler(projects, f"filler-{number}", Random(f"{seed}/filler/{number}"))
        number += 1
    _add_requirements(list(projects.values()), Random(f"{seed}/requirements"))
    return sorted(projects.values(), key=lambda project: project.normalized)


def _made_up_rivals(module: str, draw: Random) -> list[str]:
    if not module.startswith("namesake_"):
        return []
    name = module.replace("_", "-")
    names = (f"{name}-fork", f"my-{name}", f"py{name}", f"carrier-of-{name[9:]}", f"other-{name[9:]}")
    return [one for one in names if draw.random() < 0.5]


def _package(module: str) -> list[str]:
    parts = module.split(".")
    above = [".".join(parts[:length]) for length in range(1, len(parts))]
    return [*above, module, f"{module}.core", f"{module}.errors", f"{module}.tools"]


def _count_releases(draw: Random, median: float) -> int:
    return max(1, min(80, round(draw.lognormvariate(0, 1.0) * median)))


def _add_owner(projects: dict[str, Project], truth: Truth, rivals: int, draw: Random) -> None:
    """Add an owner, which can have several imports. Some had another layout at first, and a few have moved since."""
    name = canonicalize_name(truth.project)
    if name not in projects:
        releases = _count_releases(draw, 6)
        weight = draw.lognormvariate(2.5, 2.0) * (1 + rivals) ** 0.7
        projects[name] = Project(truth.project, draw.randrange(SERIAL * 7 // 10), weight, [[] for _ in range(releases)])
    owner = projects[name]
    lists, chance = owner.modules, draw.random()
    first = draw.randrange(len(lists)) if chance < 0.12 else 0
    end = len(lists) - 1 if 0.12 <= chance < 0.14 and len(lists) > 1 else len(lists)
    for number in range(first, end):
        lists[number] += _package(truth.module)


def _add_rival(projects: dict[str, Project], module: str, owner: Project, name: str, draw: Random) -> None:
    """Add a fork (some take over, most are forgotten), a predecessor, or an independent project with a copy."""
    normalized = canonicalize_name(name)
    if normalized not in projects:
        projects[normalized] = Project(name, 0, 0.0, [[f"{normalized.replace('-', '_')}_own"]])
    rival = projects[normalized]
    chance = draw.random()
    if chance < 0.45:
        rival.born = max(rival.born, draw.randrange(owner.born, SERIAL))
        rival.weight = owner.weight * draw.uniform(0.2, 0.7) if draw.random() < 0.03 else draw.lognormvariate(-3.0, 1.5)
        rival.modules += [_package(module) for _ in range(_count_releases(draw, 2))]
        rival.modules.pop(0)
    elif chance < 0.5:
        rival.born = draw.randrange(owner.born + 1)
        rival.weight = owner.weight * draw.uniform(0.02, 0.3)
        rival.modules += [_package(module) for _ in range(_count_releases(draw, 4))]
    else:
        rival.born = max(rival.born, draw.randrange(SERIAL))
        rival.weight = max(rival.weight, draw.lognormvariate(-3.0, 2.0))
        releases, since, until = _count_releases(draw, 4), draw.random(), draw.uniform(0.3, 1.6)
        own = rival.modules[0]
        for number in range(releases):
            has_copy = since * 0.7 <= (number + 1) / releases <= until
            rival.modules.append([*own, *(_package(module) if has_copy else [])])


def _add_squat(projects: dict[str, Project], module: str, owner: Project, name: str, draw: Random) -> None:
    """Add a project that squats on the name, mostly with a single release. Requirements of it are always mistakes."""
    born = draw.randrange(owner.born, SERIAL) if draw.random() < 0.7 else draw.randrange(SERIAL)
    lists = [_package(module) for _ in range(draw.choice((1, 1, 1, 2, 3)))]
    project = Project(name, born, 0.02, lists)
    projects[project.normalized] = project
    owner.mistaken_for = project.normalized


def _add_filler(projects: dict[str, Project], name: str, draw: Random) -> None:
    modules = _package(name.replace("-", "_"))
    if draw.random() < 0.15:
        modules += [draw.choice(_JUNK)]
    lists = [modules for _ in range(_count_releases(draw, 2))]
    projects[name] = Project(name, draw.randrange(SERIAL), draw.lognormvariate(-3.0, 2.0), lists)


def _add_requirements(projects: list[Project], draw: Random) -> None:
    """Draw each project's requirements: popular projects more often, and sometimes the project with the wrong name."""
    weights = list(accumulate(project.weight for project in projects))
    for project in projects:
        wanted = min(40, int(draw.expovariate(1 / _REQUIREMENTS)))
        for required in draw.choices(projects, cum_weights=weights, k=wanted):
            mistaken = required.mistaken_for
            project.requires.add(mistaken if mistaken and draw.random() < _MISTAKEN else required.normalized)
        project.requires.discard(project.normalized)


def rows_of(project: Project) -> Iterator[Row]:
    """Yield the rows of a project's files, one a release, in the order of dumps."""
    releases = len(project.modules)
    requires = sorted(project.requires)
    rows = []
    for number, modules in enumerate(project.modules):
        version = f"{number // 10 + 1}.{number % 10}"
        rows.append(
            dict.fromkeys(COLUMNS)
            | {
                "project": project.name,
                "normalized": project.normalized,
                "version": version,
                "filename": f"{project.normalized}-{version}.tar.gz",
                "tombstone": False,
                "kind": "sdist",
                "yanked": False,
                "live_since": project.born + (SERIAL - project.born) * number // releases,
                "outcome": "data",
                "requires_dist": requires,
                "provides_extra": [],
                "modules": sorted(set(modules)),
                "stubs": [],
            }
        )
    yield from sorted(rows, key=lambda row: (str(row["version"]), str(row["filename"])))


def all_rows(projects: Iterable[Project]) -> Iterator[Row]:
    """Yield the rows of the whole index, by project."""
    for project in projects:
        yield from rows_of(project)
