"""Runs programs and kills them with SIGKILL before or after one of their puts to the storage."""

import subprocess

from pypi_assets.catalog.database import Catalog
from pypi_assets.storage.store import Storage
from pypi_assets_tests.forked import ForkedProgram

_COUNTED = """
import sys
from pypi_assets.catalog.database import open_catalog
from pypi_assets.storage import store

steps, last = 0, int(sys.argv[3])
put = store.Storage.put

def counted_put(self, path, content):  # between two of these steps all kills have the same effect
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
"""


def run_and_kill(program: str, catalog: Catalog, storage: Storage, step: int) -> str:
    """Runs `program`, which has the names `catalog` and `storage`, up to the given step, and kills it there.

    Each put has two steps. Returns the step, as `before PATH` or `after PATH`, or else the line that it printed.
    """
    arguments = str(catalog.engine.url), storage.url, step
    with ForkedProgram(_COUNTED + program, *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        reached = process.stdout.readline().strip()
        process.kill()
    return reached
