"""A dataset without a version is not built yet: the error names why, and the commands to run."""

import re
from dataclasses import replace

from pypi_assets.dumps.dump_manifest import manifest_path
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.format.errors import NotBuiltYetError, NoVersionError
from pypi_assets.leveldbs.versions.no_version import no_version
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.naming import mentions

HASHES = DATASETS["hashes"]


def test_a_dataset_that_can_be_built_needs_an_update(storage: Storage) -> None:
    error = no_version(HASHES, storage)
    assert type(error) is NoVersionError
    assert mentions(str(error), "hashes", storage.url, "pypi-assets leveldb update")


def test_a_damaged_dump_does_not_hide_the_error(storage: Storage) -> None:
    storage.put(manifest_path("0-200"), b"damaged")
    assert mentions(str(no_version(HASHES, storage)), "hashes", "pypi-assets leveldb update")


def test_without_dumps_the_error_names_every_command_from_the_crawl_on() -> None:
    storage = open_storage("memory:///")
    error = no_version(HASHES, storage)
    assert type(error) is NoVersionError
    assert mentions(str(error), "hashes", storage.url)
    assert re.search("crawl full.*dump full.*leveldb update", str(error))


def test_where_dumps_lack_columns_they_are_made_again_first(storage: Storage) -> None:
    needy = replace(HASHES, columns=(*HASHES.columns, "novel"))
    for unreadable in (None, {1: "damaged"}):
        error = no_version(needy, storage, unreadable)
        assert type(error) is NotBuiltYetError
        assert mentions(str(error), "hashes", 1, "0-100", "novel")


def test_where_dumps_lack_columns_the_versions_that_cannot_be_read_are_named_too(storage: Storage) -> None:
    needy = replace(HASHES, columns=(*HASHES.columns, "novel"))
    text = str(no_version(needy, storage, {2: "a file is missing", 1: "in format 0"}))
    assert mentions(text, "version 2: a file is missing", "version 1: in format 0")


def test_versions_that_cannot_be_read_are_named_with_their_reasons(storage: Storage) -> None:
    error = no_version(HASHES, storage, {2: "a file is missing", 1: "in format 0"})
    assert type(error) is NoVersionError
    unread = ("version 2: a file is missing", "version 1: in format 0")
    assert mentions(str(error), "hashes", storage.url, *unread, "pypi-assets leveldb update")
