"""An index whose projects require each other, and requirements with closures of chosen sizes.

The same seed gives the same rows. A few projects are required by many others, and have many releases.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from benchmarks.generated import generate_projects, release_rows

PROJECTS = 3_000
MEDIAN, P95 = 20, 60
"""The median and the 95th percentile of the number of projects that a set of requirements leads to."""
_REQUIRED, _SKEW, _LEAVES = 3.0, 4, 40
_SPREAD = math.log(P95 / MEDIAN) / 1.645  # of a log-normal distribution
_POOL = 4_000
_PLATFORMS = ("manylinux_2_17_x86_64.manylinux2014_x86_64", "macosx_11_0_arm64", "win_amd64")
_ROW = next(release_rows(next(iter(generate_projects(1))), 0))


def graph(seed: int = 0, projects: int = PROJECTS) -> list[list[int]]:
    """Return the projects that each project requires, by number. They have lower numbers, so there is no cycle."""
    draw = Random(seed)
    found = []
    for number in range(projects):
        most = min(int(draw.expovariate(1 / _REQUIRED)), 12, number) if number > _LEAVES else 0
        required: set[int] = set()
        while len(required) < most:
            required.add(int(number * draw.random() ** _SKEW))
        found.append(sorted(required))
    return found


def rows(required: Sequence[Sequence[int]], serials: int, seed: int = 0) -> Iterator[Mapping[str, object]]:
    """Yield the rows of a dump, by project and version. Their serials are between 1 and `serials`."""
    for number, some in enumerate(required):
        draw = Random(f"{seed}/{number}")
        name = project_name(number)
        releases = _releases(draw, number)
        binary = draw.random() < 0.1
        files = [f"cp3{minor}-cp3{minor}-{tag}" for minor in (10, 11, 12, 13) for tag in _PLATFORMS]
        tags = files if binary else ["py3-none-any"]
        specifiers: dict[int, str] = {}
        of_project = []
        for release in range(releases):
            for one in some:
                if release == 0 or draw.random() < 0.1:
                    specifiers[one] = _requirement(draw, one, release / releases)
            version = f"{release // 20}.{release % 20}"
            since = 1 + int((serials - 1) * (release + draw.random()) / releases)
            own = {
                "project": name,
                "normalized": name,
                "version": version,
                "requires_dist": tuple(specifiers[one] for one in some),
                "provides_extra": (),
                "requires_python": ">=3.9",
                "live_since": since,
                "modules": (name.replace("-", "_"),),
                "yanked": False,
                "yanked_reason": None,
                "outcome": "data",
                "error_kind": None,
                "metadata_version": "2.1",
                "modules_by": "archive",
                "requires_by": "METADATA",
            }
            stem = name.replace("-", "_")
            filenames = [*(f"{stem}-{version}-{tag}.whl" for tag in tags), f"{stem}-{version}.tar.gz"]
            for filename in filenames:
                kind = "wheel" if filename.endswith(".whl") else "sdist"
                of_project.append(dict(_ROW) | own | {"kind": kind, "filename": filename})
        for place, row in enumerate(of_project):
            row["sha256"] = f"{number:032x}{place:032x}"
        yield from sorted(of_project, key=lambda row: (str(row["version"]), str(row["filename"])))


def project_name(number: int) -> str:
    """Return the normalized name of a project. Names sort by number."""
    return f"closure-{number:05}"


def requirement_sets(required: Sequence[Sequence[int]], count: int, seed: int = 0) -> list[tuple[list[str], int]]:
    """Return sets of one to five requirements, each with the number of projects that it leads to."""
    draw = Random(f"{seed}/sets")
    pool = []
    for _ in range(_POOL):
        roots = draw.sample(range(_LEAVES, len(required)), draw.choice((1, 1, 2, 3, 5)))
        pool.append((_closure(required, roots), roots))
    pool.sort()
    sizes = [size for size, _ in pool]
    found = []
    for _ in range(count):
        wanted = draw.lognormvariate(math.log(MEDIAN), _SPREAD)
        place = min(range(len(pool)), key=lambda one: abs(sizes[one] - wanted))
        same = [one for one in range(max(0, place - 20), min(len(pool), place + 20)) if sizes[one] == sizes[place]]
        size, roots = pool[draw.choice(same)]
        found.append(([project_name(one) for one in roots], size))
    return found


def _releases(draw: Random, number: int) -> int:
    releases = round(draw.lognormvariate(math.log(6), 1.1))
    return max(1, min(releases * (10 if number < 200 else 1), 400))


def _requirement(draw: Random, required: int, age: float) -> str:
    """Return a requirement of a release that is as old as this share of its project's releases."""
    releases = _releases(Random(f"0/{required}"), required)
    at = int(releases * age * draw.random())
    least = f"{at // 20}.{at % 20}"
    name = project_name(required)
    kind = draw.random()
    if kind < 0.3:
        return name
    if kind < 0.8:
        return f"{name}>={least}"
    if kind < 0.9:
        return f"{name}>={least},<{at // 20 + 3}"
    return f"{name}>={least}; python_version >= '3.8'"


def _closure(required: Sequence[Sequence[int]], roots: Sequence[int]) -> int:
    seen = set(roots)
    waiting = list(roots)
    while waiting:
        for one in required[waiting.pop()]:
            if one not in seen:
                seen.add(one)
                waiting.append(one)
    return len(seen)
