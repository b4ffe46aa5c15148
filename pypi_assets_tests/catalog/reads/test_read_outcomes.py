"""The outcome that a record stands for, and the kind of a failure."""

import pytest

from pypi_assets.catalog.reads.read_outcomes import FinishedRead, Outcome, record_outcome
from pypi_assets.distributions.record import DistributionKind, DistributionRecord, ErrorKind, ReadError


def record(kind: ErrorKind | None) -> DistributionRecord:
    error = None if kind is None else ReadError(kind, "text")
    return DistributionRecord("demo-1.zip", DistributionKind.SDIST, "demo", "1", error=error)


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        (None, Outcome.DATA),
        (ErrorKind.CORRUPT_ARCHIVE, Outcome.ERROR),
        (ErrorKind.UNSUPPORTED_KIND, Outcome.UNSUPPORTED),
    ],
)
def test_the_outcome_follows_from_the_error(kind: ErrorKind | None, outcome: Outcome) -> None:
    assert record_outcome(record(kind)) == outcome


def test_only_errors_and_exhausted_reads_are_failures() -> None:
    broken = record(ErrorKind.CORRUPT_ARCHIVE)
    assert FinishedRead(1, Outcome.ERROR, broken).failure == "corrupt archive"
    assert FinishedRead(1, Outcome.EXHAUSTED, error_kind="HTTP 503").failure == "HTTP 503"
    assert FinishedRead(1, Outcome.DATA, record(None)).failure is None
    assert FinishedRead(1, Outcome.VANISHED, error_kind="HTTP 404").failure is None
