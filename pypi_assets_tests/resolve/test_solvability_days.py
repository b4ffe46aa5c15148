"""The counts of days are read once, for as long as a day's file stays as it is."""

from pathlib import Path

import msgspec
import pytest

from pypi_assets.resolve import solvability_days
from pypi_assets.resolve.solvability_days import StoredDays
from pypi_assets.resolve.solvability_files import NoDayError, write_day
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.resolve.test_solvability_files import DAY, MADE


def test_a_day_is_read_once_until_it_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = open_storage(tmp_path.as_uri())
    days, reads = StoredDays(lambda: storage), []
    read_day = solvability_days.read_day
    monkeypatch.setattr(solvability_days, "read_day", lambda *given: reads.append(given) or read_day(*given))
    assert days.summaries(5) == []
    with pytest.raises(NoDayError):
        days.read(None)
    write_day(storage, MADE)
    for _ in range(3):
        [one] = days.summaries(5)
    assert (one.day, one.serial, one.outcomes["solvable"], one.newly_unsolvable) == (DAY, 1350, 3, 2)
    assert len(reads) == 1
    write_day(storage, msgspec.structs.replace(MADE, newly_unsolvable=()))
    [one] = days.summaries(5)
    assert (one.newly_unsolvable, len(reads)) == (0, 2)
    assert days.read(None) == days.read(DAY)
