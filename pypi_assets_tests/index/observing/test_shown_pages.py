"""What pages show, as plain values."""

from pypi_assets.index.observing.shown_pages import NO_VALIDATORS, Validators


def test_a_request_is_conditional_by_what_is_known() -> None:
    assert NO_VALIDATORS.headers() == {}
    assert Validators('"x"', None).headers() == {"If-None-Match": '"x"'}
    assert Validators(None, "Mon, 01 Jan 2026 00:00:00 GMT").headers() == {
        "If-Modified-Since": "Mon, 01 Jan 2026 00:00:00 GMT"
    }
