"""A dataset is due only when every dump of the cover has the columns that it needs."""

from dataclasses import replace

from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.missing_columns import missing_columns, not_built_yet

DATASET = replace(DATASETS["modules"], name="demo", columns=("project", "one", "two"))


def test_dumps_with_all_columns_lack_none() -> None:
    assert missing_columns(DATASET, {"0-7": ("two", "project", "one", "other")}) == {}
    assert missing_columns(DATASET, {}) == {}


def test_each_dump_is_named_with_what_it_lacks() -> None:
    found = missing_columns(DATASET, {"0-7": ("project",), "7-8": DATASET.columns, "8-9": ("project", "two")})
    assert found == {"0-7": ("one", "two"), "8-9": ("one",)}


def test_the_error_names_the_dumps_their_missing_columns_and_the_command() -> None:
    one = str(not_built_yet(DATASET, {"0-7": ("one",)}))
    assert one == (
        "demo is not built yet: 1 dump of the cover (0-7) lacks the column one;"
        " run `pypi-assets admin reprocess`, `pypi-assets dump redo` and `pypi-assets leveldb update`, in this order"
    )
    many = str(not_built_yet(DATASET, {f"{start}-{start + 1}": ("one", "two") for start in range(5)}))
    assert "5 dumps of the cover (0-1, 1-2, 2-3, ...) lack the columns one, two; run" in many
