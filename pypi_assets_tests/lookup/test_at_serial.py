"""Of any serial, the catalog answers what the LevelDB versions of that serial answered when they were the newest."""

import hashlib
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.publications.dump_rows import project_rows_at, providing_releases
from pypi_assets.catalog.reports.files_by_hash import files_with_sha256
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup.depgraph_reader import project_answer
from pypi_assets.lookup.hashes_reader import hash_answer, known_hash_answer
from pypi_assets.lookup.latest import open_latest
from pypi_assets.lookup.modules_reader import module_answer
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.small_catalog import SmallCatalog, small_catalog

PROJECTS = ("Demo.Pkg", "other", "third")
VERSIONS = ("1.0", "1.0.0", "2", "10", "no version")
MODULES = ("demo", "demo.a", "demo.a.b", "other", "tests", "größe", "requests>=2")
QUESTIONS = (*MODULES, "demo.b", "dem", "demo.", ".demo", "", "unknown", "m" * 600, "half \udc80", "nul\0")

files = st.fixed_dictionaries(
    {
        "project": st.sampled_from(PROJECTS),
        "version": st.sampled_from(VERSIONS),
        "suffix": st.sampled_from([".tar.gz", "-py3-none-any.whl", "-cp311-cp311-win_amd64.whl"]),
        "modules": st.none() | st.lists(st.sampled_from([*MODULES, "m" * 600]), max_size=4).map(tuple),
        "requires_dist": st.none() | st.lists(st.sampled_from(["requests>=2", "demo"]), max_size=2).map(tuple),
        "requires_python": st.sampled_from([None, ">=3.8"]),
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
            | {sha256: hashes.file(sha256).results for sha256 in hashes_of(small)}
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
            sha256: hash_answer(serial, sha256, files_with_sha256(catalog, serial, sha256)).results
            for sha256 in hashes_of(small)
        }
    )


def hashes_of(small: SmallCatalog) -> list[str]:
    return [hashlib.sha256(filename.encode()).hexdigest() for filename in small.filenames]


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(batches=batches)
def test_answers_equal_those_of_the_leveldbs_of_that_serial(batches):
    with tempfile.TemporaryDirectory() as folder:
        small = small_catalog(Path(folder))
        storage = open_storage((Path(folder) / "storage").as_uri())
        serial, state, published = 0, dict[str, str](), {}
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
            full_dump(small.catalog, storage, 1)
            for dataset in DATASETS:
                build_version(dataset, storage=storage, catalog=small.catalog)
            published[serial] = published_answers(small, storage)
        for at, expected in published.items():
            assert {question: found for question, found in answers_at(small, at).items() if found} == {
                question: found for question, found in expected.items() if found
            }
        small.catalog.close()


def test_a_module_is_found_by_its_root_and_not_by_its_siblings(tmp_path: Path):
    small = small_catalog(tmp_path)
    small.add(1, "Demo", "1", "demo-1.zip", modules=("space.one",), requires_dist=("two",))
    small.add(2, "Demo", "2", "demo-2.zip", modules=("space.one", "two"))
    small.add(3, "other", "1", "other-1.zip", modules=("two",), requires_dist=("space.one",))
    small.remove(4, "demo-2.zip")

    def provided(module: str, serial: int) -> object:
        return [
            (row["project"], row["versions"])
            for row in module_answer(serial, module, providing_releases(small.catalog, serial, module)).results
        ]

    assert provided("space.one", 3) == [("Demo", ["1", "2"])]
    assert provided("space", 3) == []
    assert provided("two", 2) == [("Demo", ["2"])]
    assert provided("two", 4) == [("other", ["1"])]
    small.catalog.close()


@pytest.mark.parametrize("length", [511, 512, 513, 5_000])
def test_module_names_of_any_length(tmp_path: Path, length: int):
    small = small_catalog(tmp_path)
    name = "größe" * length
    small.add(1, "demo", "1", "demo-1.zip", modules=(name[:length], name[:length] + ".x"))
    for module in (name[:length], name[:length] + ".x"):
        assert list(providing_releases(small.catalog, 1, module)) == [("demo", "demo", "1")]
    assert list(providing_releases(small.catalog, 1, name[: length + 1])) == []
    small.catalog.close()


def test_a_removed_file_is_known_with_its_times(tmp_path: Path):
    small = small_catalog(tmp_path)
    small.add(1, "Demo", "1", "demo-1.zip")
    small.remove(3, "demo-1.zip")
    small.show_again(5, "demo-1.zip")
    [sha256] = hashes_of(small)

    def known(serial: int) -> object:
        answer = known_hash_answer(serial, sha256, files_with_sha256(small.catalog, serial, sha256))
        return [(one["filename"], one["live_since"], one["live"]) for one in answer.results]

    assert known(2) == [("demo-1.zip", 1, [(1, None)])]
    assert known(4) == [("demo-1.zip", None, [(1, 3)])]
    assert known(5) == [("demo-1.zip", 5, [(1, 3), (5, None)])]
    assert hash_answer(4, sha256, files_with_sha256(small.catalog, 4, sha256)).results == ()
    small.catalog.close()
