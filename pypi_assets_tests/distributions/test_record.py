"""Licence, links and import names within the limits of a record."""

import pytest

from pypi_assets.distributions.record import MAX_LICENSE_BYTES, bounded, cut_license, join_urls


@pytest.mark.parametrize("text", [None, "", "MIT", "x" * MAX_LICENSE_BYTES, "é" * (MAX_LICENSE_BYTES // 2)])
def test_a_licence_within_the_limit_stays_as_it_is(text):
    assert cut_license(text) == text


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("x" * (MAX_LICENSE_BYTES + 1), "x" * MAX_LICENSE_BYTES),
        ("x" + "é" * MAX_LICENSE_BYTES, "x" + "é" * (MAX_LICENSE_BYTES // 2 - 1)),
        ("xy" + "\U0001f600" * MAX_LICENSE_BYTES, "xy" + "\U0001f600" * (MAX_LICENSE_BYTES // 4 - 1)),
        ("x" * (MAX_LICENSE_BYTES - 1) + " y", "x" * (MAX_LICENSE_BYTES - 1)),
    ],
)
def test_a_longer_licence_is_cut_between_two_characters(text, cut):
    assert cut_license(text) == cut


@pytest.mark.parametrize(
    ("written", "home_page", "download_url", "expected"),
    [
        ([], None, None, []),
        (["Docs, d"], "h", "f", ["Homepage, h", "Download, f", "Docs, d"]),
        (["Docs, h"], "h", None, ["Homepage, h", "Docs, h"]),
        (["Home-Page, h", "download, f"], "h", "f", ["Home-Page, h", "download, f"]),
        (["Homepage,other"], "h", None, ["Homepage, h", "Homepage,other"]),
        (["no label"], "UNKNOWN", "UNKNOWN", ["no label"]),
    ],
)
def test_home_page_and_download_url_are_links_unless_one_of_them_is_the_same(
    written, home_page, download_url, expected
):
    assert join_urls(written, home_page, download_url) == expected


def test_what_is_too_long_or_too_much_is_left_out_and_noted():
    assert bounded(["b", "a", "b"], "X") == (("b", "a"), ())
    kept, notes = bounded(["x" * 2001, *map(str, range(1500))], "X")
    assert kept == tuple(map(str, range(1000)))
    assert notes == ("X: 501 values are left out: a record keeps 1000 of at most 2000 characters each",)
