"""Verification, missing versions, and the dumps that versions hold."""

import re
from collections.abc import Sequence
from dataclasses import replace

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.catalog.ledger.serial_range import RangeError, SerialRange
from pypi_assets.catalog.publications.dump_columns import DumpKind, Leaves
from pypi_assets.catalog.publications.dump_registry import Dump, DumpState
from pypi_assets.dumps.cover import Cover, cover
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.dump_manifest import file_path, manifest_path
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.dumps.held_dumps import HeldDumps
from pypi_assets.dumps.stored_cover import stored_cover
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_errors import (
    LeveldbDamagedError,
    LeveldbError,
    NotBuiltYetError,
    NoVersionError,
)
from pypi_assets.leveldbs.versions import leveldb_manifest
from pypi_assets.leveldbs.versions.input_lists import InputList, input_list_path, read_input_list, write_input_list
from pypi_assets.leveldbs.versions.leveldb_manifest import publish_leveldbs
from pypi_assets.leveldbs.versions.missing_version import no_version
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets.storage.published import PUBLISHED
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.compaction import compact
from pypi_assets_tests.demo_catalog import add_range
from pypi_assets_tests.leveldbs.versions.demo_versions import build
from pypi_assets_tests.naming import mentions, naming
from pypi_assets_tests.small_catalog import SmallCatalog


def test_verify_reports_problems(small: SmallCatalog, storage: Storage) -> None:
    build(small, storage)
    inputs = read_input_list(storage, "modules", 1)
    assert mentions(verify("modules", 5, storage=storage).problems[0], "version 5", "modules")
    with pytest.raises(LeveldbError, match=naming("other")):
        verify("other", 1, storage=storage)
    write_input_list(storage, InputList("modules", 1, inputs.directory, inputs.manifest_sha256, 99, inputs.inputs))
    assert mentions(verify("modules", 1, storage=storage).problems[0], "serial", 100, 99)
    write_input_list(storage, InputList("modules", 1, inputs.directory, "00" * 32, 100, inputs.inputs))
    assert mentions(verify("modules", 1, storage=storage).problems[0], "_MANIFEST.json")
    storage.put(input_list_path("modules", 1), b"nothing of the kind\n")
    with pytest.raises(LeveldbDamagedError, match=naming("00001")):
        read_input_list(storage, "modules", 1)


def test_deep_verification_detects_a_version_that_differs_from_its_inputs(
    small: SmallCatalog, storage: Storage
) -> None:
    build(small, storage)
    add_range(small, storage, 100)
    build(small, storage)
    old, new = read_input_list(storage, "modules", 1), read_input_list(storage, "modules", 2)
    write_input_list(storage, InputList("modules", 1, old.directory, old.manifest_sha256, old.serial, new.inputs))
    assert verify("modules", 1, storage=storage).ok
    assert not verify("modules", 1, storage=storage, deep=True).ok
    storage.delete(file_path("0-100", "python_distribution_data0000.json.gz"))
    assert mentions(
        verify("modules", 2, storage=storage, deep=True).problems[0], "python_distribution_data0000.json.gz"
    )


HASHES = DATASETS["hashes"]


def test_missing_version_error_with_dumps_names_the_update(storage: Storage) -> None:
    error = no_version(HASHES, storage)
    assert type(error) is NoVersionError
    assert mentions(str(error), "hashes", storage.url, "pypi-assets leveldb update")


def test_corrupt_dump_does_not_hide_the_error(storage: Storage) -> None:
    storage.put(manifest_path("0-200"), b"damaged")
    assert mentions(str(no_version(HASHES, storage)), "hashes", "pypi-assets leveldb update")


def test_error_without_dumps_names_all_commands_from_crawl() -> None:
    storage = open_storage("memory:///")
    error = no_version(HASHES, storage)
    assert type(error) is NoVersionError
    assert mentions(str(error), "hashes", storage.url)
    assert re.search("crawl full.*dump full.*leveldb update", str(error))


def test_error_for_missing_columns_names_the_dump_command_first(storage: Storage) -> None:
    needy = replace(HASHES, columns=(*HASHES.columns, "novel"))
    for unreadable in (None, {1: "damaged"}):
        error = no_version(needy, storage, unreadable)
        assert type(error) is NotBuiltYetError
        assert mentions(str(error), "hashes", 1, "0-100", "novel")


def test_error_for_missing_columns_names_unreadable_versions_too(storage: Storage) -> None:
    needy = replace(HASHES, columns=(*HASHES.columns, "novel"))
    text = str(no_version(needy, storage, {2: "a file is missing", 1: "in format 0"}))
    assert mentions(text, "version 2: a file is missing", "version 1: in format 0")


def test_unreadable_versions_are_named_with_their_reasons(storage: Storage) -> None:
    error = no_version(HASHES, storage, {2: "a file is missing", 1: "in format 0"})
    assert type(error) is NoVersionError
    unread = ("version 2: a file is missing", "version 1: in format 0")
    assert mentions(str(error), "hashes", storage.url, *unread, "pypi-assets leveldb update")


def dump(serials: SerialRange, directory: str, joined: Sequence[str] = ()) -> Dump:
    kind = DumpKind.FULL if serials.start == 0 else DumpKind.COMPACTED if joined else DumpKind.INCREMENTAL
    leaves = Leaves.of(joined) if joined else None
    return Dump(1, kind, serials, directory, 1, 1, DumpState.COMMITTED, joined=leaves)


@st.composite
def covers(draw: st.DrawFn) -> tuple[list[Dump], list[str]]:
    """Draw a cover and the directories of its leaves, starting with the full dump."""
    full = draw(st.sampled_from(["0-10", "0-10.2"]))
    dumps, leaves, end = [dump(SerialRange(0, 10), full)], [full], 10
    for _ in range(draw(st.integers(0, 4))):
        start, names = end, []
        for _ in range(draw(st.integers(1, 3))):
            names.append(f"{end}-{end + 10}{draw(st.sampled_from(['', '.2']))}")
            end += 10
        directory = names[0] if len(names) == 1 else f"{start}-{end}"
        dumps.append(dump(SerialRange(start, end), directory, names if len(names) > 1 else ()))
        leaves += names
    return dumps, leaves


def follows(held: list[str], cover: list[Dump], leaves: list[str]) -> tuple[Dump, ...] | None:
    """Return the dumps after the leaves `held` if the cover begins with these leaves, else None."""
    if leaves[: len(held)] != held:
        return None
    remaining = len(held)
    for position, entry in enumerate(cover):
        if remaining == 0:
            return tuple(cover[position:])
        remaining -= entry.leaves.count
    return () if remaining == 0 else None


@given(covers(), covers())
def test_following_dumps_match_a_comparison_of_names(
    held: tuple[list[Dump], list[str]], later: tuple[list[Dump], list[str]]
) -> None:
    dumps, leaves = held
    found = HeldDumps.of(dumps)
    assert found.following(dumps) == ()
    for one in (found, HeldDumps.decode(found.encode())):
        assert one == found
        assert one.following(later[0]) == follows(leaves, *later)
    assert len(found.encode()) <= 2


def test_a_year_of_ranges_is_encoded_in_two_strings() -> None:
    names = [f"{start}-{start + 10}" for start in range(10, 525_610, 10)]
    cover = [dump(SerialRange(0, 10), "0-10"), dump(SerialRange(10, 525_610), "10-525610", names)]
    full, ranges = HeldDumps.of(cover).encode()
    assert (full, ranges[:-64]) == ("0-10", "10-525610:52560:")


@pytest.mark.parametrize("texts", [[], ["0-10", "nothing"], ["0-10", "10-20:x:y"], ["0-10", "10-20"]])
def test_invalid_list_of_dumps_is_rejected(texts: list[str]) -> None:
    with pytest.raises((ValueError, RangeError)):
        HeldDumps.decode(texts)


def test_no_dumps_follow_an_empty_list() -> None:
    assert HeldDumps("0-10").following(()) is None


def test_storage_cover_equals_the_catalog_cover(small: SmallCatalog, storage: Storage) -> None:
    def assert_equal(*directories: str) -> None:
        found, known = stored_cover(storage), cover(small.catalog)
        assert found.directories == known.directories == directories
        assert found.serial == known.serial
        for one, other in zip(found.dumps, known.dumps, strict=True):
            assert (one.kind, one.serials, one.inputs, one.sequence, one.leaves) == (
                (other.kind, other.serials, other.inputs, other.sequence, other.leaves)
            )
            assert set(one.columns) == set(other.columns)

    assert_equal("0-100")
    ranges = [add_range(small, storage, start) for start in (100, 150)]
    assert_equal("0-100", *ranges)
    compact(small.catalog, storage, *ranges)
    assert_equal("0-100", "100-200")
    redone = full_dump(small.catalog, storage, 1, since=small.catalog.clock())
    assert_equal(redone.directory)


def test_storage_without_dumps_has_an_empty_cover() -> None:
    assert stored_cover(open_storage("memory:///")) == Cover()


def test_corrupt_manifest_is_an_error(storage: Storage) -> None:
    storage.put(manifest_path("0-100"), b"damaged")
    with pytest.raises(DumpDamagedError, match="0-100"):
        stored_cover(storage)


def test_complete_set_is_named_while_datasets_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage("memory:///")
    monkeypatch.setattr(leveldb_manifest, "DATASETS", ("modules", "hashes", "simple"))

    def publish(dataset: str, version: int, serial: int) -> dict[str, list[str]]:
        write_input_list(storage, InputList(dataset, version, f"{version:05d}", "0" * 64, serial, ()))
        publish_leveldbs(storage)
        found = orjson.loads(storage.get(PUBLISHED))["leveldbs"]
        return {name: [entry["path"].rpartition("/")[2] for entry in entries] for name, entries in found.items()}

    assert publish("modules", 1, 10) == {"modules": ["00001"]}
    assert publish("hashes", 1, 10) == {"modules": ["00001"], "hashes": ["00001"]}
    assert publish("modules", 2, 20) == {"modules": ["00001", "00002"], "hashes": ["00001"]}
    assert publish("hashes", 2, 20) == {"modules": ["00002"], "hashes": ["00002"]}
    assert publish("modules", 3, 30) == {"modules": ["00002", "00003"], "hashes": ["00002"]}
    assert publish("simple", 4, 40) == {"modules": ["00003"], "hashes": ["00002"], "simple": ["00004"]}
