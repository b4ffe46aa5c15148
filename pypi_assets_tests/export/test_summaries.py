"""Each format has a sentence, and no other name has."""

from pypi_assets.export.formats import FORMATS
from pypi_assets.export.summaries import SUMMARIES


def test_each_format_has_a_sentence() -> None:
    assert list(SUMMARIES) == list(FORMATS)
    assert all(summary.endswith(".") for summary in SUMMARIES.values())
