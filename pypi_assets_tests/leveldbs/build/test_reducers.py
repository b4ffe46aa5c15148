"""Reducers end together, and with the reason of the one that failed."""

import os
import signal
from pathlib import Path

import pytest

from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.dump_manifest import Manifest, file_path
from pypi_assets.leveldbs.build.loading import Reducers
from pypi_assets.leveldbs.build.reduce_process import Setup
from pypi_assets.leveldbs.format.errors import LeveldbError
from pypi_assets.storage.store import Storage
from pypi_assets_tests.naming import naming

RUN_BYTES = 1024


def setups(storage: Storage, dump: Manifest, folder: Path) -> Setup:
    return Setup("modules", storage.url, dump.directory, str(folder / "runs"), [], RUN_BYTES)


def test_a_process_that_is_killed_ends_the_build(tmp_path: Path, storage: Storage, dump: Manifest) -> None:
    with Reducers(2) as reducers:
        os.kill(reducers.processes[1], signal.SIGKILL)
        with pytest.raises(LeveldbError, match=naming("SIGKILL")):
            reducers.reduce(dump.files, lambda number: setups(storage, dump, tmp_path / f"{number}"), int)


def test_damage_and_a_full_disk_are_reported_as_they_are(tmp_path: Path, storage: Storage, dump: Manifest) -> None:
    with Reducers(1) as reducers, pytest.raises(LeveldbError, match=naming("nowhere/runs", "disk full")):
        reducers.reduce(dump.files, lambda _: setups(storage, dump, tmp_path / "nowhere"), int)
    path = file_path(dump.directory, dump.files[5].name)
    storage.put(path, storage.get(path)[:-20])
    for number in range(2):
        (tmp_path / f"{number}").mkdir()
    with Reducers(2) as reducers, pytest.raises(DumpDamagedError, match=dump.files[5].name):
        reducers.reduce(dump.files, lambda number: setups(storage, dump, tmp_path / f"{number}"), int)


def test_the_progress_callback_can_end_the_build(tmp_path: Path, storage: Storage, dump: Manifest) -> None:
    def lost(_: int) -> None:
        raise LeveldbError("the lease is lost")

    with Reducers(1) as reducers, pytest.raises(LeveldbError):
        reducers.reduce(dump.files, lambda _: setups(storage, dump, tmp_path), lost)
