"""A dataset's need for a build depends on the dumps in its newest version, its format, and the dumps' columns."""

from dataclasses import replace

import pytest

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.dumps.cover import Cover, cover
from pypi_assets.dumps.dump_writer import write_range
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.leveldb_errors import NotBuiltYetError
from pypi_assets.leveldbs.versions.build_need import (
    BuildNeed,
    Need,
    build_need,
    missing_columns,
    newest_version,
    not_built_yet,
)
from pypi_assets.leveldbs.versions.input_lists import MANIFEST_NAME, input_list_path, leveldb_path
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.storage.store import Storage
from pypi_assets_tests.compaction import compact
from pypi_assets_tests.demo_catalog import add_range
from pypi_assets_tests.naming import mentions
from pypi_assets_tests.small_catalog import SmallCatalog

DATASET = replace(DATASETS["modules"], name="demo", columns=("project", "one", "two"))


def test_complete_dumps_lack_no_columns() -> None:
    assert missing_columns(DATASET, {"0-7": ("two", "project", "one", "other")}) == {}
    assert missing_columns(DATASET, {}) == {}


def test_dumps_are_named_with_their_missing_columns() -> None:
    missing = missing_columns(DATASET, {"0-7": ("project",), "7-8": DATASET.columns, "8-9": ("project", "two")})
    assert missing == {"0-7": ("one", "two"), "8-9": ("one",)}


def test_error_names_dumps_missing_columns_and_command() -> None:
    one = str(not_built_yet(DATASET, {"0-7": ("one",)}))
    assert one == (
        "demo is not built yet: 1 dump of the cover (0-7) lacks the column one;"
        " run `pypi-assets admin reprocess`, `pypi-assets dump redo` and `pypi-assets leveldb update`, in this order"
    )
    many = str(not_built_yet(DATASET, {f"{start}-{start + 1}": ("one", "two") for start in range(5)}))
    assert "5 dumps of the cover (0-1, 1-2, 2-3, ...) lack the columns one, two; run" in many


MODULES = DATASETS["modules"]


def need(small: SmallCatalog, storage: Storage) -> BuildNeed:
    newest = newest_version(storage, "modules")
    return build_need(MODULES, newest.manifest, cover(small.catalog), newest.problems)


def build(small: SmallCatalog, storage: Storage) -> None:
    assert build_version("modules", storage=storage, catalog=small.catalog).published


def test_build_without_dumps_is_impossible() -> None:
    answer = build_need(MODULES, None, Cover())
    assert (answer.need, answer.is_due, answer.is_buildable) == (Need.NO_DUMPS, False, False)


def test_version_is_due_until_it_holds_the_cover(small: SmallCatalog, storage: Storage) -> None:
    first = need(small, storage)
    assert (first.need, first.is_due, first.version) == (Need.NO_VERSION, True, None)
    assert [dump.directory for dump in first.dumps] == ["0-100"]
    build(small, storage)
    held = need(small, storage)
    assert (held.need, held.is_due, held.version, held.serial) == (Need.HELD, False, 1, 100)
    assert mentions(held.reason, "version 1")
    ranges = [add_range(small, storage, start) for start in (100, 150)]
    grown = need(small, storage)
    assert (grown.need, grown.is_due) == (Need.NEW_DUMPS, True)
    assert [dump.directory for dump in grown.dumps] == ranges
    build(small, storage)
    compact(small.catalog, storage, *ranges)
    assert need(small, storage).need == Need.HELD  # the same leaves


def test_redone_range_needs_a_new_version(small: SmallCatalog, storage: Storage) -> None:
    add_range(small, storage, 100)
    build(small, storage)
    write_range(small.catalog, storage, SerialRange(100, 150), again=True)
    answer = need(small, storage)
    assert (answer.need, answer.is_due) == (Need.OTHER_DUMPS, True)
    assert [dump.directory for dump in answer.dumps] == ["0-100", "100-150.2"]
    build(small, storage)
    assert need(small, storage).need == Need.HELD


def test_new_full_dump_needs_a_new_version(small: SmallCatalog, storage: Storage) -> None:
    build(small, storage)
    full_dump(small.catalog, storage, 1, since=small.catalog.clock())
    assert need(small, storage).need == Need.OTHER_DUMPS


def test_other_format_needs_a_build_from_scratch(small: SmallCatalog, storage: Storage) -> None:
    build(small, storage)
    newest = newest_version(storage, "modules").manifest
    raised = replace(MODULES, format=MODULES.format + 1)
    answer = build_need(raised, newest, cover(small.catalog))
    assert (answer.need, answer.is_due, len(answer.dumps)) == (Need.OTHER_FORMAT, True, 1)
    assert mentions(answer.reason, f"format {MODULES.format}")


@pytest.mark.parametrize("is_built", [False, True])
def test_dumps_with_missing_columns_make_nothing_due(small: SmallCatalog, storage: Storage, *, is_built: bool) -> None:
    if is_built:
        build(small, storage)
        add_range(small, storage, 100)
    reached = cover(small.catalog)
    lacking = Cover(tuple(replace(dump, columns=("project", "filename")) for dump in reached.dumps))
    answer = build_need(MODULES, newest_version(storage, "modules").manifest, lacking)
    assert (answer.need, answer.is_due, answer.is_buildable) == (Need.LACKS_COLUMNS, False, False)
    assert mentions(answer.reason, "modules", "pypi-assets admin reprocess", "pypi-assets dump redo")


def test_build_from_dumps_with_missing_columns_is_rejected(
    small: SmallCatalog, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DATASETS, "modules", replace(MODULES, columns=(*MODULES.columns, "new_column")))
    with pytest.raises(NotBuiltYetError, match="new_column"):
        build(small, storage)


@pytest.mark.parametrize("path", [input_list_path("modules", 1), f"{leveldb_path('modules', '00001')}/{MANIFEST_NAME}"])
def test_unreadable_version_is_named(small: SmallCatalog, storage: Storage, path: str) -> None:
    build(small, storage)
    storage.put(path, b"damaged")
    answer = need(small, storage)
    assert (answer.need, answer.is_due, answer.version) == (Need.UNREADABLE, True, None)
    assert mentions(answer.reason, "version 1")
    lacking = Cover(tuple(replace(dump, columns=("project", "filename")) for dump in cover(small.catalog).dumps))
    newest = newest_version(storage, "modules")
    without = build_need(MODULES, newest.manifest, lacking, newest.problems)
    assert without.need == Need.LACKS_COLUMNS
    assert mentions(without.reason, "version 1")
