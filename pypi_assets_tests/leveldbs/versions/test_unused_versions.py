"""Deletion of old LevelDB versions and tables, despite late writers and corrupt input lists."""

import hashlib
from dataclasses import replace

import pytest

from pypi_assets.dumps.dump_manifest import MANIFEST_NAME
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError
from pypi_assets.leveldbs.versions.input_lists import (
    InputList,
    input_list_path,
    leveldb_path,
    published_versions,
    read_input_list,
    write_input_list,
)
from pypi_assets.leveldbs.versions.leveldb_manifest import read_published
from pypi_assets.lookup import open_latest
from pypi_assets.storage.sweeping import DeletionReason
from pypi_assets.upkeep.deletion import clean_versions_and_dumps
from pypi_assets_tests.naming import naming
from pypi_assets_tests.upkeep.simulated_upkeep import KEPT, Upkeep, directories


def test_newest_versions_keep_all_their_files(upkeep: Upkeep) -> None:
    upkeep.build()
    full_dump(upkeep.catalog, upkeep.storage, 1)
    upkeep.build()
    full_dump(upkeep.catalog, upkeep.storage, 1)
    upkeep.wait(50)
    assert upkeep.clean() == []
    assert upkeep.build() == 3
    assert directories(upkeep.clean()) == {"00001": DeletionReason.SUPERSEDED, "0-3": DeletionReason.SUPERSEDED}
    assert published_versions(upkeep.storage, "modules") == [2, 3]
    upkeep.wait(50)
    assert upkeep.clean() == []
    upkeep.assert_whole()
    upkeep.assert_nothing_left_over()


def test_superseded_version_is_kept_for_a_day(upkeep: Upkeep) -> None:
    for _ in range(3):
        upkeep.dump_range()
        upkeep.build()
    assert upkeep.clean() == []
    upkeep.wait(25)
    assert directories(upkeep.clean()) == {"00001": DeletionReason.SUPERSEDED}


def test_version_with_a_corrupt_input_list_does_not_count(upkeep: Upkeep) -> None:
    for _ in range(3):
        upkeep.dump_range()
        upkeep.build()
    before = upkeep.paths()
    upkeep.storage.put(input_list_path("modules", 3), b"damaged")
    upkeep.wait(50)
    assert upkeep.clean() == []
    upkeep.dump_range()
    upkeep.build()
    upkeep.wait(50)
    [removal] = upkeep.clean()
    assert (removal.path, removal.files) == (
        leveldb_path("modules", "00001"),
        0,
    )  # version 3 may need its files
    assert before - upkeep.paths() == {input_list_path("modules", 1)}
    assert published_versions(upkeep.storage, "modules") == [2, 3, 4]
    upkeep.dump_range()
    upkeep.build()
    upkeep.wait(50)
    assert directories(upkeep.clean()) == dict.fromkeys(["00001", "00002", "00003"], DeletionReason.SUPERSEDED)
    assert published_versions(upkeep.storage, "modules") == [4, 5]
    upkeep.assert_whole()


def test_version_in_a_newer_format_keeps_all_files_that_it_may_name(upkeep: Upkeep) -> None:
    for _ in range(3):
        upkeep.dump_range()
        upkeep.build()
    inputs = read_input_list(upkeep.storage, "modules", 3)
    path = f"{leveldb_path('modules', '00003')}/{MANIFEST_NAME}"
    content = upkeep.storage.get(path).replace(b'"format": 2', b'"format": 99')
    upkeep.storage.put(path, content)
    write_input_list(upkeep.storage, replace(inputs, manifest_sha256=hashlib.sha256(content).hexdigest()))
    upkeep.wait(50)
    before = upkeep.paths()
    assert directories(upkeep.clean()) == {"00001": DeletionReason.SUPERSEDED}
    assert before - upkeep.paths() == {input_list_path("modules", 1)}


def test_tables_are_kept_while_a_kept_version_names_them(upkeep: Upkeep) -> None:
    tables = f"{leveldb_path('modules', '00001')}/"
    for _ in range(3):
        upkeep.dump_range()
        upkeep.build()
        upkeep.wait(25)
        upkeep.clean()
        upkeep.assert_whole()
        upkeep.assert_nothing_left_over()
        if upkeep.build_result.version > KEPT:  # LevelDB merges four tables
            assert {path.rpartition(".")[2] for path in upkeep.paths() if path.startswith(tables)} == {"ldb"}
    assert published_versions(upkeep.storage, "modules") == [2, 3]
    before = upkeep.paths()
    for _ in range(KEPT):
        upkeep.build(from_scratch=True)
    upkeep.wait(25)
    removed = upkeep.clean()
    assert directories(removed) == dict.fromkeys(["00001", "00002", "00003"], DeletionReason.SUPERSEDED)
    assert not any(path.startswith(tables) for path in upkeep.paths())
    assert len(before - upkeep.paths()) == sum(removal.files for removal in removed) + KEPT  # and their input lists
    upkeep.assert_nothing_left_over()


def test_base_of_a_running_build_is_kept_at_any_age(upkeep: Upkeep) -> None:
    upkeep.dump_range()
    upkeep.build()
    upkeep.wait(1000)
    upkeep.dump_range()

    def cleaned(_rows: int) -> None:
        upkeep.wait(0.1)
        assert list(clean_versions_and_dumps(upkeep.catalog, upkeep.storage, grace_s=0, versions_kept=1)) == []

    upkeep.build(progress=cleaned)
    upkeep.assert_whole()
    assert len(read_published(upkeep.storage, "modules", 2).manifest.files) > 3
    upkeep.wait(1)
    list(clean_versions_and_dumps(upkeep.catalog, upkeep.storage, grace_s=0, versions_kept=1))
    assert published_versions(upkeep.storage, "modules") == [2]
    upkeep.assert_whole()


def test_late_writer_does_not_hide_a_complete_version(upkeep: Upkeep) -> None:
    """The writer slept between its last lease check and its last write, and the tables that it names are deleted."""
    upkeep.dump_range()
    upkeep.build()
    upkeep.dump_range()
    late: list[InputList] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            "pypi_assets.leveldbs.versions.publish.write_input_list", lambda _storage, inputs: late.append(inputs)
        )
        upkeep.build()
    for _ in range(KEPT):
        upkeep.build(from_scratch=True)
        upkeep.wait(25)
        upkeep.clean()
    write_input_list(upkeep.storage, late[0])
    with pytest.raises(LeveldbDamagedError, match=naming(MANIFEST_NAME)):
        read_published(upkeep.storage, "modules", late[0].version)
    with open_latest("modules", upkeep.storage) as reader:
        assert reader.version == 4
    upkeep.dump_range()
    upkeep.build()
    assert upkeep.build_result.base_version == 4
    upkeep.wait(25)
    upkeep.clean()
    upkeep.assert_whole()
    upkeep.assert_nothing_left_over()
