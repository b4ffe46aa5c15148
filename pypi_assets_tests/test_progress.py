"""The remarks on a stage, next to its numbers: how many failed, and how long there may be nothing to do."""

import pytest

from pypi_assets.progress import Progress


@pytest.mark.parametrize(
    ("failed", "wait_s", "remarks"),
    [
        (0, 0.0, ""),
        (3, 0.0, ", 3 failed"),
        (0, 59.6, ", waiting for up to 60 s"),
        (1, 0.4, ", 1 failed, waiting for up to 0 s"),
    ],
)
def test_failures_and_waiting_are_remarks(failed: int, wait_s: float, remarks: str) -> None:
    assert Progress("files read", 1, 2, failed, wait_s).remarks == remarks


def test_a_stage_has_no_remarks_unless_it_reports_them() -> None:
    assert Progress("files read", 0, 0).remarks == ""
