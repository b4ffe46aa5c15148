"""Dumps and builds are killed with SIGKILL at many moments; done again, they end in the same state."""

from pathlib import Path

import pytest

from pypi_assets.catalog.tables import leases
from pypi_assets.dumps.cover import cover
from pypi_assets.dumps.full import full_dump
from pypi_assets.dumps.reader import iter_dump
from pypi_assets.leveldbs.input_lists import published_versions
from pypi_assets.leveldbs.publish import build_version
from pypi_assets.leveldbs.verify import verify
from pypi_assets.lookup.latest import open_latest
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.killed_puts import run_and_kill
from pypi_assets_tests.small_catalog import small_catalog

_PROGRAM = """
from pypi_assets.dumps.full import full_dump
from pypi_assets.leveldbs.publish import build_version

full_dump(catalog, storage, 1)
build_version("modules", storage=storage, catalog=catalog)
print("whole", flush=True)
"""


# Two moments a put: the shard, its manifest, two files of the LevelDB (its table is linked), manifest, input list.
@pytest.mark.parametrize("step", [1, 2, 3, 4, 8, 10, 11, 12])
def test_a_kill_at_any_step_ends_in_the_same_state(tmp_path: Path, step: int) -> None:
    small = small_catalog(tmp_path)
    for number in range(8):
        small.add(number + 1, f"project{number}", "1", f"project{number}-1.tar.gz")
    small.complete(100)
    catalog, storage = small.catalog, open_storage((tmp_path / "storage").as_uri())
    reached = run_and_kill(_PROGRAM, catalog, storage, step)
    assert reached.startswith("after" if step % 2 == 0 else "before")
    assert (published_versions(storage, "modules") == []) == (reached != "after modules/input_lists/00001")
    with catalog.write() as connection:
        connection.execute(leases.delete())  # that of the killed process, which would end by itself in time
    full_dump(catalog, storage, 1)
    newest = build_version("modules", storage=storage, catalog=catalog)
    assert newest.published
    assert len(list(iter_dump(storage, cover(catalog).directories[0]))) == 8
    assert verify("modules", newest.version, storage=storage, deep=True).problems == ()
    with open_latest("modules", storage) as modules:
        assert len(modules.module("demo").results) == 8
        assert (modules.version, modules.skipped) == (newest.version, ())
    assert list((storage.root or Path()).glob(".private/*")) == []
    catalog.close()
