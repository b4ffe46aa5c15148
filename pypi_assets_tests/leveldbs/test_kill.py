"""Dumps and builds are killed with SIGKILL at many moments; done again, they end in the same state."""

import os
import signal
import subprocess
import sys
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
from pypi_assets_tests.small_catalog import small_catalog

_STEPS = """
import sys
from pypi_assets.catalog.database import open_catalog
from pypi_assets.dumps.full import full_dump
from pypi_assets.leveldbs.publish import build_version
from pypi_assets.storage import store

steps, last = 0, int(sys.argv[3])
put = store.Storage.put

def counted_put(self, path, content):  # the moments between which a kill can make a difference
    global steps
    for moment in ("before", "after"):
        steps += 1
        if steps == last:
            print(moment, path, flush=True)
            sys.stdin.read()
        if moment == "before":
            put(self, path, content)

store.Storage.put = counted_put
catalog, storage = open_catalog(sys.argv[1]), store.open_storage(sys.argv[2])
full_dump(catalog, storage, 1)
build_version("modules", storage=storage, catalog=catalog)
print("whole", flush=True)
"""


def run_and_kill(catalog_url: str, storage_url: str, step: int) -> str:
    """Runs dump and build up to the given step, kills it there, and returns which step that was."""
    command = [sys.executable, "-c", _STEPS, catalog_url, storage_url, str(step)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        reached = process.stdout.readline().strip()
        os.kill(process.pid, signal.SIGKILL)
    return reached


# Two moments a put: the shard, its manifest, three files of the LevelDB (its table is linked), manifest, input list.
@pytest.mark.parametrize("step", [1, 2, 3, 4, 10, 12, 13, 14])
def test_a_kill_at_any_step_ends_in_the_same_state(tmp_path: Path, step: int) -> None:
    small = small_catalog(tmp_path)
    for number in range(8):
        small.add(number + 1, f"project{number}", "1", f"project{number}-1.tar.gz")
    small.complete(100)
    catalog, storage = small.catalog, open_storage((tmp_path / "storage").as_uri())
    reached = run_and_kill(str(catalog.engine.url), storage.url, step)
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
