"""Measure how often the owner of an import is ranked first, in a generated index and among real wheels.

    python -m benchmarks.owners [--held-out] [--projects 35000] [--seed 0]
    python -m benchmarks.owners --wheels FOLDER [FOLDER ...] [--held-out]

The truth is corpora/import_names.csv: the tables of pipreqs, marimo, flake8-requirements and grayskull, in which people
list the project of an import. If they name several projects, each of them counts as right. Half of the imports are held
out, by a hash: weights were chosen with the other half, and `--held-out` measures the result on the held-out half.
Every miss is printed, with the candidates before it and the reasons.

The generated index (owners_index.py) has `--projects` projects. With `--wheels`, the index consists of the wheels in
these folders, each read like in a crawl, and the truth is limited to imports whose project is among them. `python -m
benchmarks.corpora.download --wheels` downloads some. The tables are older than the wheels: imports that a wheel no
longer has are skipped, and listed.
"""

import argparse
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from benchmarks.owners_index import Truth, all_rows, generate, namesakes, read_truths
from pypi_assets.catalog.publications.dump_columns import COLUMNS
from pypi_assets.distributions.reader import read_path
from pypi_assets.dumps.dump_format import Row
from pypi_assets.leveldbs.build.builder import Builder
from pypi_assets.leveldbs.datasets.registry import require_dataset
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets.lookup.depgraph_reader import DepgraphReader
from pypi_assets.lookup.import_owners import ImportOwners, owners
from pypi_assets.lookup.modules_reader import ModulesReader
from pypi_assets.lookup.owner_ranking import in_words
from pypi_assets.lookup.reader import Closing, OpenVersion
from pypi_assets.questions.published_snapshot import PublishedSnapshot

_JUNK = ("tests", "docs", "examples", "test", "scripts")
_BEST_OF_MISSES = 4


class BuiltVersion:
    """The only version of a dataset, which was built but not published."""

    def __init__(self, dataset: str, db: Database, serial: int) -> None:
        self.dataset, self.skipped = dataset, dict[int, str]()
        self._opened = OpenVersion(db, dataset, 1, serial, checked=True, closing=Closing(ExitStack()))

    def open_newest(self, *, check_hashes: bool, beyond: int = 0) -> OpenVersion | None:  # noqa: ARG002 - it is good
        """Return the version if it is above `beyond`."""
        return None if beyond else self._opened


@contextmanager
def built(rows: Sequence[Row], serial: int) -> Iterator[PublishedSnapshot]:
    """Yield the datasets for ranking owners, built from `rows`, which ascend by project."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder, name) for name in ("modules", "depgraph")}
        for name, path in paths.items():
            with open_leveldb(path, name, create=True) as db:
                builder = Builder(db, require_dataset(name))
                builder.apply(rows, "the rows", fresh=True)
                builder.finish(serial)
        with open_leveldb(paths["modules"], "modules") as modules, open_leveldb(paths["depgraph"], "depgraph") as graph:
            readers = {
                ModulesReader: ModulesReader(BuiltVersion("modules", modules, serial), check_hashes=False),
                DepgraphReader: DepgraphReader(BuiltVersion("depgraph", graph, serial), check_hashes=False),
            }
            yield PublishedSnapshot(readers.__getitem__, nullcontext)


def wheel_rows(folders: Iterable[Path]) -> list[Row]:
    """Return the rows of all wheels below the folders. Of several wheels of a version, only the first counts."""
    rows: dict[tuple[str, str], Row] = {}
    for path in sorted(path for folder in folders for path in folder.rglob("*.whl")):
        try:
            name, version = map(str, parse_wheel_filename(path.name)[:2])
        except InvalidWheelFilename:
            continue
        key = name, version
        record = read_path(path)
        if key in rows or record.modules is None:
            continue
        rows[key] = dict.fromkeys(COLUMNS) | {
            "project": name,
            "normalized": key[0],
            "version": version,
            "filename": path.name,
            "tombstone": False,
            "kind": "wheel",
            "yanked": False,
            "live_since": 1,
            "outcome": "data",
            "requires_dist": list(record.requires_dist or ()),
            "provides_extra": [],
            "modules": list(record.modules),
            "stubs": list(record.stubs),
            "import_names": None if record.import_names is None else list(record.import_names),
        }
    return [rows[key] for key in sorted(rows)]


def provided(truths: Iterable[Truth], rows: Iterable[Row]) -> tuple[list[Truth], list[Truth]]:
    """Return the truths that hold for the wheels, and the outdated truths, whose wheels lack the module."""
    modules: dict[str, set[str]] = {}
    for row in rows:
        modules.setdefault(str(row["normalized"]), set()).update(row["modules"])
    known = [truth for truth in truths if truth.right & modules.keys()]
    holding = [any(truth.module in modules.get(project, ()) for project in truth.right) for truth in known]
    return [one for one, holds in zip(known, holding, strict=True) if holds], [
        one for one, holds in zip(known, holding, strict=True) if not holds
    ]


def called_like_projects(rows: Iterable[Row]) -> list[Truth]:
    """Return modules of the wheels with the name of their project, which no table needs to list."""
    names = {str(row["normalized"]).replace("-", "_"): row for row in rows}
    return [Truth(name, str(row["project"]), ()) for name, row in sorted(names.items()) if name in row["modules"]]


def rank_of(truth: Truth, answer: ImportOwners) -> int | None:
    """Return the rank of the first right candidate, or None if none is right."""
    ranks = (one["rank"] for one in answer["candidates"] if one["normalized"] in truth.right)
    return next(ranks, None)


def report(which: str, truths: Sequence[Truth], answers: Sequence[ImportOwners]) -> None:
    """Print how often a right project is at rank 1, and within rank 3, and each miss."""
    ranks = [rank_of(truth, answer) for truth, answer in zip(truths, answers, strict=True)]
    candidates = sorted(len(answer["candidates"]) for answer in answers)
    several = [rank for rank, answer in zip(ranks, answers, strict=True) if len(answer["candidates"]) > 1]
    required = [rank for truth, answer, rank in zip(truths, answers, ranks, strict=True) if _is_required(truth, answer)]
    most = candidates[-1] if candidates else 0
    print(f"\n| imports {which} | number | rank 1 | within 3 |\n|---|---|---|---|")
    for group, some in (
        ("all", ranks),
        ("of projects that others require", required),
        (f"with several candidates, {most} at most", several),
    ):
        first = sum(rank == 1 for rank in some)
        within = sum(rank is not None and rank <= 3 for rank in some)
        total = max(1, len(some))
        print(f"| {group} | {len(some)} | {first} ({first / total:.2%}) | {within} ({within / total:.2%}) |")
    print()
    for truth, answer, rank in zip(truths, answers, ranks, strict=True):
        if rank != 1:
            print(f"miss: {truth.module} is of {truth.project}, which has rank {rank}")
            for one in answer["candidates"][: max(_BEST_OF_MISSES, rank or 0)]:
                print(f"    {one['rank']} {one['project']} {one['score']}: {'; '.join(in_words(one['reasons']))}")


def _is_required(truth: Truth, answer: ImportOwners) -> bool:
    return any(one["normalized"] in truth.right and one["reasons"]["dependents"] for one in answer["candidates"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--projects", type=int, default=35_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--wheels", type=Path, nargs="+")
    parser.add_argument("--held-out", action="store_true", help="use the half that was not used to choose weights")
    arguments = parser.parse_args()
    truths = [truth for truth in read_truths() if truth.is_held_out == arguments.held_out]
    if arguments.wheels:
        rows = wheel_rows(arguments.wheels)
        truths, outdated = provided(truths, rows)
        made_up = [truth for truth in called_like_projects(rows) if truth.is_held_out == arguments.held_out]
        print(f"skipped, since the wheel has no such module: {', '.join(truth.module for truth in outdated)}")
    else:
        rows = list(all_rows(generate(arguments.projects, arguments.seed)))
        made_up = [truth for truth in namesakes() if truth.is_held_out == arguments.held_out]
    projects = len({row["normalized"] for row in rows})
    print(f"{projects} projects, {len(rows)} files; {'held out' if arguments.held_out else 'for choosing weights'}")
    with built(rows, 1_000_000) as snapshot:
        started = time.perf_counter()
        answers = owners(snapshot, [truth.module for truth in (*truths, *made_up)])
        seconds = time.perf_counter() - started
        report("of tables", truths, answers[: len(truths)])
        if made_up:
            report("called like their projects", made_up, answers[len(truths) :])
        print(f"{len(answers)} imports in {seconds:.3f} s")
        for junk in _JUNK:
            started = time.perf_counter()
            [found] = owners(snapshot, [junk])
            seconds = time.perf_counter() - started
            if not found["candidates"]:
                continue
            is_marked = all(one["reasons"]["junk_root"] for one in found["candidates"])
            print(f"{junk}: {len(found['candidates'])} candidates in {seconds:.3f} s, junk root: {is_marked}")


if __name__ == "__main__":
    main()
