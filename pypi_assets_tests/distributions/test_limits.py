"""Each limit ends the reading of a file that exceeds it."""

import pytest

from pypi_assets.distributions.record import ErrorKind
from pypi_assets_tests.builders import tar_bytes, zip_bytes
from pypi_assets_tests.distributions.small_archives import METADATA, PKG_INFO, SDIST, WHEEL, error_of, read
from pypi_assets_tests.naming import mentions


def big_wheel():
    return zip_bytes({METADATA: PKG_INFO + " " * 50_000} | {f"m{number}.py": "" for number in range(50)})


def big_sdist(suffix="tar.gz"):
    members = {"demo-1.0/PKG-INFO": PKG_INFO + " " * 50_000} | {f"demo-1.0/m{number}.py": "" for number in range(50)}
    return tar_bytes(members, format=suffix)


def test_each_limit(subtests: pytest.Subtests):
    cases_of_limits = [
        ({"max_file_bytes": 400}, 400),
        ({"max_members": 20}, 20),
        ({"max_metadata_bytes": 20_000}, 20000),
        ({"max_wanted_bytes": 40_000}, 40000),
        ({"max_kept_bytes": 40}, 40),
        ({"max_inflated_bytes": 30_000}, 30000),
        ({"seconds": 0.0}, 0),
    ]
    for limits, value in cases_of_limits:
        for content, filename in [(big_wheel(), WHEEL), (big_sdist(), SDIST)]:
            with subtests.test(content=content, limits=limits):
                assert read(content, filename).error is None
                record = read(content, filename, **limits)
                assert error_of(record).kind is ErrorKind.LIMIT_EXCEEDED
                assert mentions(error_of(record).text, value)
                if "seconds" not in limits:  # time may run out before or after the last byte
                    assert (record.sha256 is None) == ("max_file_bytes" in limits)


def test_zip_directory_size_is_limited():
    error = error_of(read(big_wheel(), WHEEL, max_directory_bytes=2000))
    assert error.kind is ErrorKind.LIMIT_EXCEEDED
    assert mentions(error.text, 2000)
