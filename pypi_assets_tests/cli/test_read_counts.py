"""What commands print about reads."""

import pytest

from pypi_assets.cli.read_counts import describe_reads, report_failed
from pypi_assets.crawl.reading import ReadCounts


def test_only_outcomes_that_occurred_are_named() -> None:
    assert describe_reads(ReadCounts()) == "distributions: none to read"
    counts = ReadCounts(data=3, errors=1, exhausted=2, bytes_fetched=1234, requests=7, seconds=1.26)
    assert describe_reads(counts) == (
        "distributions: 3 read, 1 with errors, 2 exhausted (1234 bytes fetched, 7 requests, 1.3 s)"
    )


def test_failures_are_counted_with_the_command_that_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    report_failed(ReadCounts(data=3), 0)
    assert capsys.readouterr().err == ""
    report_failed(ReadCounts(errors=1, exhausted=2), 4)
    assert capsys.readouterr().err.splitlines() == [
        "distributions that could not be read: 3; see `pypi-assets failures list`",
        "projects that could not be visited: 4; see `pypi-assets failures list`",
    ]
