"""Compare searches in the edges of newest releases with DuckDB on the same edges, and with the records.

    python -m benchmarks.edges [--projects 20000] [--storage FOLDER] [--rounds 5] [--drawn 740000]

The index is the generated one of `benchmarks.impact`, which is published in FOLDER if it is not there yet. DuckDB has
the edges in a table in memory, and one thread. Each round runs a search and its baseline by turns, and the least
processor time of all rounds counts. A baseline counts only if its answer is the same: the projects with their depths,
or the whole results if they come from the records.

With `--drawn`, a file of edges is drawn for this many projects, without an index. The newest release of each requires
4.6 others on average, and older ones require one more. An eighth of them require the first project, under 1,000
specifiers.
"""

import argparse
import tempfile
import time
from array import array
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import orjson
import pyarrow as pa
from packaging.version import Version

from benchmarks.impact import BASE, publish
from pypi_assets.leveldbs.datasets.depgraph.edge_file import write_edge_file
from pypi_assets.leveldbs.datasets.depgraph.edges import Edges, edge_files, open_edges
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.input_lists import published_versions
from pypi_assets.lookup import DepgraphReader, open_latest, requirement_filters
from pypi_assets.lookup.release_impact import impact
from pypi_assets.lookup.requirement_filters import accepting
from pypi_assets.storage.store import Storage, open_storage

VERSION = Version("2.0")
COLUMNS = ("results", "ms", "baseline", "ms there", "ratio")
_EVERY, _PART = 8, 0.6
"""An eighth of drawn projects require the first one, and this part of them requires a fifth project."""
_DEPTHS = """
    WITH RECURSIVE found(project, depth) USING KEY (project) AS (
        SELECT ?::UINTEGER, 0
        UNION
        SELECT edges.project, found.depth + 1 FROM found JOIN edges ON edges.required = found.project
        WHERE edges.project NOT IN (SELECT project FROM recurring.found)
    )
    SELECT names.name, found.depth FROM found JOIN names ON names.number = found.project
"""
_REACHED = """
    WITH RECURSIVE found(project) AS (
        SELECT ?::UINTEGER UNION SELECT edges.project FROM found JOIN edges ON edges.required = found.project
    )
    SELECT count(*) - 1 FROM found
"""
Search = Callable[[], Any]


def connect(edges: Edges) -> duckdb.DuckDBPyConnection:
    """Return a database with the edges of newest releases, and the names of projects."""
    required, project = [], []
    for number in range(edges.size):
        of_number = edges.newest(number)[0]
        required += [number] * len(of_number)
        project += of_number
    tables = {
        "edges": pa.table({"required": pa.array(required, pa.uint32()), "project": pa.array(project, pa.uint32())}),
        "names": pa.table({"number": pa.array(range(edges.size), pa.uint32()), "name": pa.array(edges.all_names())}),
    }
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    for name, table in tables.items():
        connection.register("arrow", table)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM arrow")
    return connection


def compared(rounds: int, ours: Search, theirs: Search) -> tuple[Any, float, Any, float]:
    """Return the results of both and their least processor seconds, by turns."""
    best = {ours: float("inf"), theirs: float("inf")}
    results = {}
    for _ in range(rounds):
        for search in (ours, theirs):
            results.pop(search, None)
            begun = time.process_time()
            results[search] = search()
            best[search] = min(best[search], time.process_time() - begun)
    return results[ours], best[ours], results[theirs], best[theirs]


def depths(rows: Iterable[Any]) -> dict[str, int]:
    return {row["normalized"]: row["depth"] for row in rows}


def reached(edges: Edges, start: int) -> int:
    """Return the number of projects whose newest releases lead to a project."""
    seen, level, count = bytearray(edges.size), [start], 0
    seen[start] = 1
    while level:
        level = [one for _, projects, _ in edges.unseen(level, seen) for one in projects]
        count += len(level)
    return count


def line(what: str, count: int, ours: float, baseline: str, theirs: float) -> None:
    ratio = ours / theirs if theirs else 0.0
    print(f"| {what} | {count:,} | {ours * 1e3:.1f} | {baseline} | {theirs * 1e3:.1f} | {ratio:.2f} |", flush=True)


def run(storage: Storage, rounds: int) -> None:
    print(f"| search | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}")
    plain = replace(DATASETS["depgraph"], side_files=None)
    with open_latest(DepgraphReader, storage, check_hashes=False) as depgraph:
        edges = depgraph.edges()
        if edges is None:
            raise SystemExit("the version in the storage has no edges: choose another folder")
        start = edges.number(BASE)
        if start is None:
            raise SystemExit(f"no edge leads to {BASE}")
        connection = connect(edges)
        DATASETS["depgraph"] = plain  # the next reader sees no edges
        with open_latest(DepgraphReader, storage, check_hashes=False) as records:
            searches(depgraph, records, edges, start, connection, rounds)
    [path] = (Path(storage.root or "") / "depgraph" / "leveldbs").glob(f"*/{edges.whole.name}")
    size(edges, rounds, path.parent)


def searches(
    depgraph: DepgraphReader,
    records: DepgraphReader,
    edges: Edges,
    start: int,
    connection: duckdb.DuckDBPyConnection,
    rounds: int,
) -> None:
    found, ours, expected, theirs = compared(
        rounds, lambda: reached(edges, start), lambda: connection.execute(_REACHED, [start]).fetchone()
    )
    assert (found,) == expected
    line("reached, transitive", found, ours, "DuckDB, count", theirs)
    rows, ours, expected, theirs = compared(
        rounds,
        lambda: list(depgraph.transitive_dependents(BASE, latest=True)),
        lambda: connection.execute(_DEPTHS, [start]).fetchall(),
    )
    assert depths(rows) == {name: depth for name, depth in expected if name != BASE}
    line("dependents --latest --transitive", len(rows), ours, "DuckDB, names and depths", theirs)
    queries: dict[str, Callable[[DepgraphReader], Iterable[Any]]] = {
        "dependents --latest": lambda reader: reader.latest_dependents(BASE),
        "dependents --latest --transitive": lambda reader: reader.transitive_dependents(BASE, latest=True),
        "dependents --transitive": lambda reader: reader.transitive_dependents(BASE),
        "impact": lambda reader: impact(reader, BASE),
        f"impact =={VERSION}": lambda reader: impact(reader, BASE, VERSION),
        "impact --transitive": lambda reader: impact(reader, BASE, transitive=True),
        f"impact =={VERSION} --transitive": lambda reader: impact(reader, BASE, VERSION, transitive=True),
        "most required, 100": lambda reader: reader.most_required(100),
    }
    for what, query in queries.items():
        found, ours, expected, theirs = compared(
            min(rounds, 2), lambda query=query: list(query(depgraph)), lambda query=query: list(query(records))
        )
        assert found == expected
        line(what, len(found), ours, "records", theirs)


def size(edges: Edges, rounds: int, folder: Path) -> None:
    """Print the size of the file in a folder, and the time to open it and to compare its checksum."""
    opened = checked = float("inf")
    for _ in range(rounds):
        begun = time.process_time()
        found = edge_files(folder)
        opened = min(opened, time.process_time() - begun)
        begun = time.process_time()
        assert found is not None
        found[0].check()
        checked = min(checked, time.process_time() - begun)
    print(
        f"\n{edges.whole.names:,} names, {edges.whole.edges:,} edges, {edges.whole.lists:,} lists:"
        f" {edges.whole.size / 1e6:.1f} MB, opened in {opened * 1e3:.2f} ms, first use {checked * 1e3:.2f} ms"
    )


def draw(path: Path, projects: int) -> None:
    """Write edges of this many projects, whose names and requirement lists have the lengths of real ones."""
    random = Random(0)
    requiring: list[array[int]] = [array("I") for _ in range(projects)]
    older: list[array[int]] = [array("I") for _ in range(projects)]
    for number in range(projects):
        some = {0} if number % _EVERY == 1 else set[int]()
        while len(some) < 4 + (random.random() < _PART):
            some.add(int(projects * random.random() ** 3))
        for required in some:
            requiring[required].append(number)
        older[int(projects * random.random() ** 3)].append(number)
    specifiers = [f"*>={one % 20}.{one // 20}" for one in range(1_000)]
    lists = [b"[]", *(orjson.dumps([[one]]) for one in specifiers)]
    lists += [orjson.dumps([[f"*>={one}.0; extra == 'x{one}'"]]) for one in range(projects // 4)]
    requirements = array("I")
    for required, some in enumerate(requiring):
        most = len(specifiers) if required == 0 else len(lists) - 1
        requirements.extend(1 + random.randrange(most) for _ in some)
    write_edge_file(
        path,
        base=None,
        content_hash="",
        names=[b"project-%07d" % number for number in range(projects)],
        release=array("I", (random.randrange(5_000) for _ in range(projects))),
        place=array("I"),
        newest=_joined(requiring),
        requirements=requirements,
        older=_joined(older),
        deleted=_joined([array("I")] * projects),
        versions=[b"%d.%d" % divmod(one, 50) for one in range(5_000)],
        lists=lists,
        conditions=bytes([3, *(2 if b"extra" in one else 0 for one in lists[1:])]),
    )


def _joined(parts: Iterable["array[int]"]) -> tuple["array[int]", "array[int]"]:
    starts, joined = array("I", [0]), array("I")
    for part in parts:
        joined += part
        starts.append(len(joined))
    return starts, joined


class DrawnGraph:
    """A graph that has edges alone."""

    def __init__(self, edges: Edges) -> None:
        self._edges = edges

    def edges(self) -> Edges:
        return self._edges


def run_drawn(folder: Path, projects: int, rounds: int) -> None:
    """Print the size of drawn edges, and the time of a search that judges the specifiers of many dependents."""
    path = folder / "drawn.edges"
    draw(path, projects)
    edges = open_edges(folder)
    assert edges is not None
    judged = float("inf")
    for _ in range(rounds):
        for cached in (accepting, requirement_filters.accepts, requirement_filters.specifier_text):
            cached.cache_clear()  # type: ignore[attr-defined]
        begun = time.process_time()
        count = sum(1 for _ in impact(DrawnGraph(edges), "project-0000000", Version("9.7")))  # type: ignore[arg-type]
        judged = min(judged, time.process_time() - begun)
    begun = time.process_time()
    found = reached(edges, 0)
    reach = time.process_time() - begun
    print("| search | results | ms |\n|---|---|---|")
    print(f"| direct dependents judged, {count:,} of them accept | {edges.count(0):,} | {judged * 1e3:.0f} |")
    print(f"| reached, transitive | {found:,} | {reach * 1e3:.0f} |")
    size(edges, rounds, path.parent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--projects", type=int, default=20_000)
    parser.add_argument("--storage", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--drawn", type=int, help="draw the edges of this many projects, and measure them alone")
    options = parser.parse_args()
    if options.drawn:
        with tempfile.TemporaryDirectory(prefix="pypi-assets-edges-") as temporary:
            run_drawn(Path(temporary), options.drawn, options.rounds)
        return
    with tempfile.TemporaryDirectory(prefix="pypi-assets-edges-") as temporary:
        storage = open_storage((options.storage or Path(temporary)).absolute().as_uri())
        if not published_versions(storage, "depgraph"):
            publish(storage, options.projects)
        run(storage, options.rounds)


if __name__ == "__main__":
    main()
