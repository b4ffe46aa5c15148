from pypi_assets.times import utc_text


def test_times_are_in_utc_to_the_second():
    assert utc_text(1_772_366_400.9) == "2026-03-01T12:00:00Z"
    assert utc_text(None) is None
