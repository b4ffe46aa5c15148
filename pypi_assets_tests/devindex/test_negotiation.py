"""The choice between JSON and HTML by the Accept header."""

import pytest

from pypi_assets.devindex.negotiation import HTML, V1_HTML, V1_JSON, choose


def test_choose(subtests: pytest.Subtests) -> None:
    cases = [
        (None, HTML),
        ("*/*", HTML),
        (V1_JSON, V1_JSON),
        (V1_HTML, V1_HTML),
        (f"{V1_JSON}, {V1_HTML}; q=0.1, {HTML}; q=0.01", V1_JSON),  # pip's
        (f"{HTML};q=0.2, {V1_JSON} ; q=0.3", V1_JSON),
        (f"{HTML}, {V1_JSON};q=0.9", HTML),
        (f"{V1_JSON}, {HTML}", HTML),
        (f"*/*;q=0.1, {V1_JSON}", V1_JSON),
        (f"*/*, {HTML};q=0.5", V1_HTML),
        (f"application/*, {V1_HTML};q=0", V1_JSON),
        (f"{V1_JSON};q=broken, {HTML};q=0.1", HTML),
        (V1_JSON.upper(), V1_JSON),
        ("image/png", HTML),
        (f"{HTML};q=0", HTML),
    ]
    for accept, chosen in cases:
        with subtests.test(accept=accept):
            assert choose(accept) == chosen
