"""What commands about newest releases share: names with versions, and what they print around an answer."""

import re
from collections import Counter

import click
import pytest
from packaging.version import Version

from pypi_assets.cli.newest_answers import check_depth, counting, named_version, print_summary, with_context
from pypi_assets.lookup.answers import Answer, Stream


def test_a_name_can_have_a_version():
    assert named_version("Demo") == ("Demo", None)
    assert named_version("demo == v1.0") == ("demo", Version("1.0"))
    for wrong in ("demo==", "demo==no-version", ""):
        with pytest.raises(click.BadParameter):
            named_version(wrong)


def test_a_depth_goes_with_transitive():
    check_depth(1, transitive=True)
    check_depth(None, transitive=False)
    with pytest.raises(click.UsageError):
        check_depth(1, transitive=False)


def test_a_summary_counts_the_depths(capsys: pytest.CaptureFixture[str]):
    rows = tuple({"depth": depth} for depth in (1, 1, 2))
    answer = Answer(None, 7, rows, dict, epoch=9, followed_projects=3)
    depths: Counter[int] = Counter()
    assert list(counting(with_context(answer), depths)) == [{**row, "epoch": 9, "followed_projects": 3} for row in rows]
    print_summary(answer, depths, "nothing")
    stream = Stream(5, 8, iter(()), dict)
    assert list(with_context(stream)) == []
    print_summary(stream, Counter(), "nothing at all")
    counted, nothing = capsys.readouterr().err.splitlines()
    assert re.findall(r"\d+", counted) == ["3", "2", "1", "1", "2", "7", "3"]
    assert re.findall(r"\d+", nothing) == ["8"]
