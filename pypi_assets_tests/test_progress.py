"""The remarks on a stage, next to its numbers: how many failed, and how long there may be nothing to do."""

import re

import pytest

from pypi_assets.progress import Progress


@pytest.mark.parametrize(
    ("failed", "wait_s", "named"),
    [(0, 0.0, []), (3, 0.0, ["3"]), (0, 59.6, ["60"]), (1, 0.4, ["1", "0"])],
)
def test_failures_and_waiting_are_remarks(failed: int, wait_s: float, named: list[str]) -> None:
    assert re.findall(r"\d+", Progress("files read", 1, 2, failed, wait_s).remarks) == named


def test_a_stage_has_no_remarks_unless_it_reports_them() -> None:
    assert Progress("files read", 0, 0).remarks == ""


def test_a_wait_ends_in_its_last_error() -> None:
    assert Progress("visits", 1, 2, wait_s=3.0, reason="HTTP 503 (URL)").remarks.endswith("HTTP 503 (URL)")
