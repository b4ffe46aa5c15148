from datetime import date
from pathlib import Path

from pypi_assets.resolve.solvability_files import SOLVABILITY, clean_days, solvability_path, stored_days
from pypi_assets.storage.store import open_storage


def test_days_that_were_written_long_ago_are_deleted_and_nothing_else(tmp_path: Path) -> None:
    storage = open_storage(tmp_path.as_uri())
    days = [date(2026, 3, day) for day in (2, 1)]
    others = [f"{SOLVABILITY}/notes.txt", f"{SOLVABILITY}/2026-02-30.json.gz", "elsewhere/2026-03-01.json.gz"]
    for path in (*map(solvability_path, days), *others):
        storage.put(path, b"something")
    written = storage.head(solvability_path(days[0])).last_modified.timestamp()
    assert clean_days(storage, written - 60) == []
    found = [one.path for one in clean_days(storage, written + 60, dry_run=True)]
    assert found == [solvability_path(day) for day in reversed(days)]
    assert stored_days(storage) == sorted(days)
    assert [one.path for one in clean_days(storage, written + 60)] == found
    assert stored_days(storage) == []
    assert all(storage.exists(path) for path in others)
