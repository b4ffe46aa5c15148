"""Rows drawn by tests, and the records of LevelDBs built from them."""

from collections.abc import Sequence
from pathlib import Path

import orjson
from hypothesis import strategies as st

from pypi_assets.dumps.dump_format import Row
from pypi_assets.leveldbs.build.builder import Builder
from pypi_assets.leveldbs.datasets.registry import require_dataset
from pypi_assets.leveldbs.format.open_leveldb import open_leveldb
from pypi_assets.leveldbs.format.records import META_PREFIX, read_meta
from pypi_assets_tests.dump_rows import dump_row, in_order

Records = dict[bytes, bytes]


def build(path: Path, dataset: str, dumps: Sequence[list[Row]], *, create: bool = True, serial: int = 9) -> Records:
    """Apply `dumps` and return all records of the LevelDB. If `create`, the first dump is a full dump."""
    known = require_dataset(dataset)
    with open_leveldb(path, "a test", create=create) as db:
        meta = None if create else read_meta(db, "a test", dataset=dataset, known_format=known.format)
        builder = Builder(db, known, meta)
        for number, rows in enumerate(dumps):
            builder.apply(in_order(rows), "a dump", fresh=create and number == 0)
        builder.finish(serial)
    with open_leveldb(path, "a test") as db:
        return dict(db.iterator())


def content(records: Records) -> Records:
    return {record_key: value for record_key, value in records.items() if not record_key.startswith(META_PREFIX)}


def decoded(records: Records, letter: bytes) -> dict[tuple[str, ...], object]:
    return {
        tuple(record_key.decode().split("\0")[1:]): orjson.loads(value)
        for record_key, value in records.items()
        if record_key.startswith(letter)
    }


PROJECTS = ["a", "ab", "b"]
_VERSIONS = ["1.0", "1.0.0", "2"]
FILES = [
    (project, version, f"{project}-{version}{suffix}")
    for project in PROJECTS
    for version in _VERSIONS
    for suffix in (".tar.gz", "-py3-none-any.whl")
]
_REQUIREMENTS = ["a>1", "A; python_version<'3'", "a; extra=='x'", "b", "b ;extra == 'y'", "c; os_name=='nt'", "no name"]


@st.composite
def rows_of(draw: st.DrawFn, file: tuple[str, str, str], serial: int) -> Row:
    modules = st.lists(st.sampled_from(["", "m", "m.n", "mm", "x\0y", "x\ufffdy", "é"]), max_size=3)
    scripts = st.lists(st.sampled_from(["m = a:b", "m.n=a:b", "mm = a", "x\0y = a:b", "é = a:b", " = a"]), max_size=3)
    hashes = ["ab" * 32, "cd" * 32, "EF" * 32, "0\0"]
    project, version, filename = file
    return dump_row(
        project,
        draw(st.sampled_from([version, version, "2!1\0", ""])),  # a file may later belong to another release
        filename,
        project=draw(st.sampled_from([project, project.upper()])),
        modules=draw(st.none() | modules),
        stubs=draw(st.just([]) | modules),
        import_names=draw(st.none() | st.lists(st.sampled_from(["m", "m.n ; private"]), max_size=2)),
        project_status=draw(st.sampled_from([None, "active", "quarantined"])),
        console_scripts=draw(st.none() | scripts),
        sha256=draw(st.none() | st.sampled_from(hashes)),
        requires_dist=draw(st.none() | st.lists(st.sampled_from(_REQUIREMENTS), max_size=3)),
        requires_python=draw(st.sampled_from([None, "", ">=3", "<4\0"])),
        requires_by=draw(st.sampled_from([None, "METADATA", "static PKG-INFO"])),
        notes=draw(st.sampled_from([None, [], ["ambiguous archive: x"], ["fine"]])),
        url=draw(st.none() | st.just(f"https://files.example.org/{filename}")),
        core_metadata_sha256=draw(st.none() | st.just("ef" * 32)),
        installed_metadata=draw(st.none() | st.just([f"Name: {project}", "Requires-Dist: b"])),
        yanked=draw(st.booleans()),
        yanked_reason=draw(st.none() | st.just("because\0")),
        live_since=draw(st.integers(0, serial)),
    )
