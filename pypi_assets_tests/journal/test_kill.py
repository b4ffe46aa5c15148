"""Writing the journal is killed with SIGKILL before and after each put. Repeated, it produces the same chain."""

from pathlib import Path

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.journal.publishing import write_missing
from pypi_assets.journal.verification import verify_stream
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.demo_catalog import demo_catalog
from pypi_assets_tests.kills import forget_leases, run_and_kill


def write(catalog: Catalog, storage: Storage) -> None:
    list(write_missing(catalog, storage))


def published(storage: Storage) -> dict[str, bytes]:
    return {file.path: storage.get(file.path) for file in storage.list("journal") if "open-" not in file.path}


# Two kill points for each put: two segments, the open segment of the index and its head, and a manifest and a head of
# each other stream; then the same for the second range.
@pytest.mark.nightly
@pytest.mark.parametrize("step", [1, 4, 8, 10, 11, 14, 20])
def test_kill_at_any_write_ends_in_the_same_chain(storage: Storage, tmp_path: Path, step: int) -> None:
    small = demo_catalog(tmp_path)
    small.add(120, "new", "1", "new-1.tar.gz")
    small.complete(150)
    reached = run_and_kill(write, small.catalog, storage, step)
    assert reached.startswith("after" if step % 2 == 0 else "before")
    for stream in JournalStream:  # the written files are valid at each moment
        state = verify_stream(storage, stream)
        assert state.is_sound or state.head is None, state.fault
    forget_leases(small.catalog)
    write(small.catalog, storage)
    undisturbed = open_storage((tmp_path / "undisturbed").as_uri())
    other = demo_catalog(tmp_path / "other")
    other.add(120, "new", "1", "new-1.tar.gz")
    other.complete(150)
    write(other.catalog, undisturbed)
    assert published(storage) == published(undisturbed)
    assert all(verify_stream(storage, stream).is_sound for stream in JournalStream)
    small.catalog.close()
    other.catalog.close()
