"""Shown pages as plain values."""

from pypi_assets.index.observing.shown_pages import NO_VALIDATORS, Validators


def test_request_conditions_come_from_the_known_page() -> None:
    assert NO_VALIDATORS.headers() == {}
    assert Validators('"x"', None).headers() == {"If-None-Match": '"x"'}
    assert Validators(None, "Mon, 01 Jan 2026 00:00:00 GMT").headers() == {
        "If-Modified-Since": "Mon, 01 Jan 2026 00:00:00 GMT"
    }
