"""At any serial, the catalog ranks owners as the LevelDB versions of that serial did when they were the newest.

For what is declared as a question, see `questions/test_snapshots.py`.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup.latest import open_latest
from pypi_assets.lookup.owners import owners
from pypi_assets.lookup.past_owners import owners_at
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.examples import examples
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

PROJECTS = ("Demo.Pkg", "other", "third", "types-demo", "other-stubs")
VERSIONS = ("1.0", "1.0.0", "2", "10", "no version")
MODULES = ("demo", "demo.a", "demo.a.b", "other", "tests", "größe", "requests>=2")
QUESTIONS = (*MODULES, "demo.b", "dem", "demo.", ".demo", "", "unknown", "m" * 600, "half \udc80", "nul\0")
REQUIREMENTS = (
    "requests>=2",
    "demo",
    "Demo_Pkg ; python_version < '3'",
    "demo.pkg; extra == 'x'",
    "demo-pkg[y]>1",
    "third @ https://example.org/third.zip",
    "-",
    "x" * 600,
)
REQUIRED = (*PROJECTS, "demo_pkg", "requests", "demo", "unknown", "half \udc80", "nul\0", "")
files = st.fixed_dictionaries(
    {
        "project": st.sampled_from(PROJECTS),
        "version": st.sampled_from(VERSIONS),
        "suffix": st.sampled_from([".tar.gz", "-py3-none-any.whl", "-cp311-cp311-win_amd64.whl"]),
        "modules": st.none() | st.lists(st.sampled_from([*MODULES, "m" * 600]), max_size=4).map(tuple),
        "requires_dist": st.none() | st.lists(st.sampled_from(REQUIREMENTS), max_size=3).map(tuple),
        "requires_python": st.sampled_from([None, ">=3.8"]),
        "stubs": st.sampled_from([(), (), ("demo",), ("other", "demo.a")]),
        "import_names": st.sampled_from([None, None, ("demo",), ("other", "demo.a ; private")]),
        "refusals": st.sampled_from([(), (), ("pip skips: odd",), ("pip skips: odd", "uv fails: odd")]),
    }
)
batches = st.lists(
    st.lists(st.tuples(files, st.sampled_from(["add", "remove", "yank"])), min_size=1, max_size=6),
    min_size=1,
    max_size=3,
)


def owners_published(storage: Storage) -> object:
    """Return the owners of all names by the newest versions."""
    with open_latest("modules", storage) as modules, open_latest("depgraph", storage) as depgraph:
        return owners(modules, depgraph, [*QUESTIONS, "demo.a.b.c", "demo"])


def made_of(small: SmallCatalog, batches: Any) -> Iterator[int]:
    """Add what was drawn to a catalog, and yield the serial after each batch."""
    serial, state = 0, dict[str, str]()
    for batch in batches:
        for file, action in batch:
            serial += 1
            filename = f"{file['project']}-{file['version']}{file['suffix']}"
            if filename not in state:
                small.add(serial, filename=filename, **{k: v for k, v in file.items() if k != "suffix"})
                state[filename] = "live"
            elif action == "remove" and state[filename] != "removed":
                small.remove(serial, filename)
                state[filename] = "removed"
            elif action == "yank" and state[filename] == "live":
                small.yank(serial, filename)
                state[filename] = "yanked"
        small.complete(serial)
        yield serial


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.too_slow])
@given(batches=batches)
def test_owners_equal_those_of_the_leveldbs_of_that_serial(batches):
    with tempfile.TemporaryDirectory() as folder:
        small = small_catalog(Path(folder))
        storage = open_storage((Path(folder) / "storage").as_uri())
        published = {}
        for serial in made_of(small, batches):
            full_dump(small.catalog, storage, 1)
            for dataset in DATASETS:
                build_version(dataset, storage=storage, catalog=small.catalog)
            published[serial] = owners_published(storage)
        for at, expected in published.items():
            assert owners_at(small.catalog, at, [*QUESTIONS, "demo.a.b.c", "demo"]) == expected
        small.catalog.close()
