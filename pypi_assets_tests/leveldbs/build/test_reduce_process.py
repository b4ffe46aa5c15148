"""A reducer process starts fast, reads the files that it is sent, and reports what it has written."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from pypi_assets.catalog.publications.dump_facts import DumpFile
from pypi_assets.dumps.dump_manifest import Manifest, file_path
from pypi_assets.leveldbs.build.loading import REDUCER_PROGRAM
from pypi_assets.leveldbs.build.reduce_process import Failed, FromReducer, Rows, Setup, Written, new_records
from pypi_assets.leveldbs.build.sorted_runs import Runs, merged
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.storage.store import Storage

SLOW_TO_IMPORT = ("sqlalchemy", "asyncio", "pandas")
HASHES = DATASETS["hashes"]


def test_a_process_starts_without_the_database() -> None:
    program = f"import sys, {REDUCER_PROGRAM}; sys.exit(any(name in sys.modules for name in {SLOW_TO_IMPORT}))"
    subprocess.run([sys.executable, "-c", program], check=True)


def reduce_by_process(setup: Setup, *files: DumpFile) -> list[FromReducer]:
    """What a process answers that is sent `files`, and then no more."""
    sent = b"".join(msgspec.json.encode(message) + b"\n" for message in (setup, *files))
    command = [sys.executable, "-m", REDUCER_PROGRAM]
    process = subprocess.run(command, input=sent, stdout=subprocess.PIPE, check=True)
    return [msgspec.json.decode(line, type=FromReducer) for line in process.stdout.splitlines()]


@pytest.fixture
def setup(storage: Storage, dump: Manifest, tmp_path: Path) -> Setup:
    return Setup("hashes", storage.url, dump.directory, str(tmp_path / "runs"), ["h", "h\0" + "8"], 100_000)


def test_each_file_is_reported_and_all_records_at_the_end(storage: Storage, dump: Manifest, setup: Setup) -> None:
    files = dump.files[:2]
    *reported, written = reduce_by_process(setup, *files)
    assert reported == [Rows(file.rows, file_ends=True) for file in files]
    assert isinstance(written, Written)
    expected: dict[bytes, bytes] = {}
    for file in files:
        for _, records in new_records(HASHES, storage, dump.directory, file):
            expected |= records
    runs = Runs(Path(setup.path), written.index_offset, written.counts, int(written.hash_sum, 16))
    assert [one for part in merged([runs], 1) for one in part.items()] == sorted(expected.items())
    assert runs.counts == {"f": len(expected) // 2, "h": len(expected) // 2}


def test_without_files_nothing_is_written(setup: Setup) -> None:
    assert reduce_by_process(setup) == [Written(0, {}, "0")]


def test_what_stops_a_process_is_its_last_message(storage: Storage, dump: Manifest, setup: Setup) -> None:
    path = file_path(dump.directory, dump.files[0].name)
    storage.delete(path)
    *_, failed = reduce_by_process(setup, dump.files[0])
    assert isinstance(failed, Failed)
    assert (failed.error, dump.files[0].name in failed.text) == ("DumpDamagedError", True)
    [failed] = reduce_by_process(msgspec.structs.replace(setup, dataset="other", path=f"{setup.path}.other"))
    assert isinstance(failed, Failed)
    assert (failed.error, "other" in failed.text) == ("LeveldbError", True)
    [failed] = reduce_by_process(setup)  # the file of its runs is there
    assert isinstance(failed, Failed)
    assert (failed.error, setup.path in failed.text) == ("LeveldbError", True)


def test_a_sample_has_the_first_of_every_n_projects(storage: Storage, dump: Manifest) -> None:
    [file] = dump.files[:1]
    whole = list(new_records(HASHES, storage, dump.directory, file))
    assert sum(rows for rows, _ in whole) == file.rows
    assert len(whole) > 3
    assert list(new_records(HASHES, storage, dump.directory, file, every=2)) == whole[::2]
