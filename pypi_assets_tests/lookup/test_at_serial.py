"""Of any serial, the catalog answers what the LevelDB versions of that serial answered when they were the newest."""

import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.publications.dump_rows import project_rows_at, providing_releases, requiring_releases
from pypi_assets.catalog.reports.files_by_hash import files_with_sha256
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup.depgraph_reader import dependents_answer, project_answer
from pypi_assets.lookup.hashes_reader import hash_answer
from pypi_assets.lookup.latest import open_latest
from pypi_assets.lookup.modules_reader import module_answer
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


def published_answers(small: SmallCatalog, storage: Storage) -> dict[object, object]:
    with (
        open_latest("modules", storage) as modules,
        open_latest("depgraph", storage) as depgraph,
        open_latest("hashes", storage) as hashes,
    ):
        return (
            {question: modules.module(question.encode(errors="replace").decode()).results for question in QUESTIONS}
            | {
                (project, version): depgraph.project(project, version).results
                for project in (*PROJECTS, "demo_pkg", "unknown")
                for version in (None, *VERSIONS, "v1")
            }
            | {
                ("dependents", name): depgraph.dependents(name.encode(errors="replace").decode()).results
                for name in REQUIRED
            }
            | {sha256: hashes.file(sha256).results for sha256 in hashes_of(small)}
            | {"owners": owners(modules, depgraph, [*QUESTIONS, "demo.a.b.c", "demo"])}
        )


def answers_at(small: SmallCatalog, serial: int) -> dict[object, object]:
    catalog = small.catalog
    return (
        {
            question: module_answer(serial, question, providing_releases(catalog, serial, question)).results
            for question in QUESTIONS
        }
        | {
            (project, version): project_answer(
                serial, map(as_dumped, project_rows_at(catalog, serial, project)), version
            ).results
            for project in (*PROJECTS, "demo_pkg", "unknown")
            for version in (None, *VERSIONS, "v1")
        }
        | {
            ("dependents", name): dependents_answer(serial, name, requiring_releases(catalog, serial, name)).results
            for name in REQUIRED
        }
        | {
            sha256: hash_answer(serial, sha256, files_with_sha256(catalog, serial, sha256)).results
            for sha256 in hashes_of(small)
        }
        | {"owners": owners_at(catalog, serial, [*QUESTIONS, "demo.a.b.c", "demo"])}
    )


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


def hashes_of(small: SmallCatalog) -> list[str]:
    return [hashlib.sha256(filename.encode()).hexdigest() for filename in small.filenames]


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.too_slow])
@given(batches=batches)
def test_answers_equal_those_of_the_leveldbs_of_that_serial(batches):
    with tempfile.TemporaryDirectory() as folder:
        small = small_catalog(Path(folder))
        storage = open_storage((Path(folder) / "storage").as_uri())
        published = {}
        for serial in made_of(small, batches):
            full_dump(small.catalog, storage, 1)
            for dataset in DATASETS:
                build_version(dataset, storage=storage, catalog=small.catalog)
            published[serial] = published_answers(small, storage)
        for at, expected in published.items():
            assert {question: found for question, found in answers_at(small, at).items() if found} == {
                question: found for question, found in expected.items() if found
            }
        small.catalog.close()
