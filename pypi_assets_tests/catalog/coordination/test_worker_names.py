"""Names of workers: unique, short enough for their column, and they show whether the process still runs."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pypi_assets.catalog.coordination import claims
from pypi_assets.catalog.coordination.claims import is_dead, machine_hash, new_worker, process_of
from pypi_assets.catalog.tables import visit_queue

NAMED = "from pypi_assets.catalog.coordination.claims import new_worker; print(new_worker(), flush=True); input()"


@pytest.fixture(autouse=True)
def _machine_is_identified_again() -> Iterator[None]:
    machine_hash.cache_clear()
    yield
    machine_hash.cache_clear()


def test_each_worker_has_a_name_of_its_own_that_fits_into_its_column(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(claims.platform, "node", lambda: "a-host-name-of-63-characters".ljust(63, "x"))
    monkeypatch.setattr(claims.os, "getpid", lambda: 2**22)  # the greatest that Linux gives
    names = [new_worker() for _ in range(1_000)]
    assert len(set(names)) == len(names)
    assert max(len(name) for name in names) <= visit_queue.c.claimed_by.type.length
    assert names[0].startswith("a-host-name-")


def test_a_worker_is_dead_once_its_process_on_this_machine_has_ended():
    with subprocess.Popen([sys.executable, "-c", NAMED], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        worker = process.stdout.readline().decode().strip()
        assert not is_dead(worker)
        process.communicate(b"\n")
    assert is_dead(worker)
    assert not is_dead("no name of a worker")


def test_a_process_id_that_was_used_again_is_another_process():
    place, _, unique = new_worker().rpartition(":")
    machine = place.rpartition(":")[0]
    assert is_dead(f"{machine}:{os.getpid()}-0123456789abcdef:{unique}")
    assert not is_dead(f"{machine}:{os.getpid()}-:{unique}")


@pytest.mark.parametrize("differing", ["_BOOT_ID", "_MACHINE_ID", "node", "_NAMESPACES"])
def test_a_worker_of_another_machine_is_not_taken_for_dead(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, differing: str
):
    """Hosts outside containers have the same namespace, and can have names that begin alike."""
    host = "runner-of-the-continuous-integration-1"
    monkeypatch.setattr(claims.platform, "node", lambda: host + "0")
    ended = new_worker().replace(f":{os.getpid()}-", ":4194304-")
    assert is_dead(ended)
    machine_hash.cache_clear()
    (tmp_path / "id").write_text("another\n")
    if differing == "node":
        monkeypatch.setattr(claims.platform, "node", lambda: host + "1")
    else:
        monkeypatch.setattr(claims, differing, () if differing == "_NAMESPACES" else tmp_path / "id")
    assert not is_dead(ended)


def test_a_name_without_the_start_of_its_process_is_not_taken_for_dead():
    assert not is_dead(f"{claims.platform.node()}/{machine_hash()}:4194304-:01234567")


def test_without_an_id_of_the_boot_no_worker_is_taken_for_dead(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(claims, "_BOOT_ID", tmp_path / "none")
    monkeypatch.setenv("PATH", str(tmp_path))
    worker = new_worker()
    assert "/:" in worker
    assert not is_dead(worker.replace(f":{os.getpid()}-", ":4194304-"))


def test_other_systems_name_the_boot_and_the_start_of_a_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    answers = {"sysctl": "BOOT-1", "ps": "Mon Nov 23 01:45:00 2026"}
    for name, answer in answers.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{answer}'\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(claims, "_BOOT_ID", tmp_path / "none")
    monkeypatch.setattr(claims, "_text", lambda path: "")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    worker = new_worker()
    assert not is_dead(worker)
    (tmp_path / "ps").write_text("#!/bin/sh\necho 'Tue Nov 24 01:45:00 2026'\n")
    assert is_dead(worker)
    machine_hash.cache_clear()
    (tmp_path / "sysctl").write_text("#!/bin/sh\necho BOOT-2\n")
    assert not is_dead(worker)


def test_workers_of_one_process_have_the_same_process():
    assert process_of(new_worker()) == process_of(new_worker())
    assert process_of("machine/1:17:abc") == "machine/1:17"
