"""Verification names what is wrong with a version, down to a record that its inputs do not lead to."""

import pytest

from pypi_assets.dumps.dump_manifest import file_path
from pypi_assets.leveldbs.format.errors import LeveldbDamagedError, LeveldbError
from pypi_assets.leveldbs.versions.input_lists import InputList, input_list_path, read_input_list, write_input_list
from pypi_assets.leveldbs.versions.verify import verify
from pypi_assets.storage.store import Storage
from pypi_assets_tests.demo_catalog import add_range
from pypi_assets_tests.leveldbs.versions.demo_versions import build
from pypi_assets_tests.naming import mentions, naming
from pypi_assets_tests.small_catalog import SmallCatalog


def test_verify_reports_what_is_wrong(small: SmallCatalog, storage: Storage) -> None:
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


def test_deep_verification_finds_a_version_that_its_inputs_do_not_lead_to(
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
