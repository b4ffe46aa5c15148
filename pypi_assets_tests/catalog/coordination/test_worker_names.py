"""Names of workers: unique, short enough for their column, and they show whether the process still runs."""

import subprocess
import sys

from pypi_assets.catalog.coordination.worker_names import is_dead, new_worker, process_of
from pypi_assets.catalog.tables import visit_queue


def test_each_worker_has_a_name_of_its_own_that_fits_into_its_column():
    names = [new_worker() for _ in range(1_000)]
    assert len(set(names)) == len(names)
    assert max(len(name) for name in names) <= visit_queue.c.claimed_by.type.length


def test_a_worker_is_dead_once_its_process_on_this_machine_has_ended():
    machine, _, _ = new_worker().rsplit(":", 2)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        worker = f"{machine}:{process.pid}:0"
        assert not is_dead(worker)
        process.communicate(b"\n")
    assert is_dead(worker)
    assert not is_dead(f"another/1:{process.pid}:0")
    assert not is_dead("no name of a worker")


def test_workers_of_one_process_have_the_same_process():
    assert process_of(new_worker()) == process_of(new_worker())
    assert process_of("machine/1:17:abc") == "machine/1:17"
