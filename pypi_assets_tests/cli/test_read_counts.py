"""What commands print about reads."""

import pytest

from pypi_assets.cli.crawl import describe_reads, report_failed
from pypi_assets.crawl.reading import ReadCounts
from pypi_assets_tests.named import unnamed


def test_only_outcomes_that_occurred_are_named() -> None:
    assert not any(map(str.isdigit, describe_reads(ReadCounts())))
    counts = ReadCounts(data=3, errors=1, exhausted=2, bytes_fetched=1234, requests=7, seconds=1.26)
    assert unnamed(describe_reads(counts), "3", "1", "2", "1234", "7", "1.3") == []


def test_failures_are_counted_with_the_command_that_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    report_failed(ReadCounts(data=3), 0)
    assert capsys.readouterr().err == ""
    report_failed(ReadCounts(errors=1, exhausted=2), 4)
    reads, visits = capsys.readouterr().err.splitlines()
    assert unnamed(reads, 3, "pypi-assets failures list") == []
    assert unnamed(visits, 4, "pypi-assets failures list") == []
