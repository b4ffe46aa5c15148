"""Each limit ends the reading of a file that exceeds it."""

import pytest

from pypi_assets.distributions.record import ErrorKind, ReadError
from pypi_assets_tests.builders import tar_bytes, zip_bytes
from pypi_assets_tests.distributions.small_archives import METADATA, PKG_INFO, SDIST, WHEEL, error_of, read


def big_wheel():
    return zip_bytes({METADATA: PKG_INFO + " " * 50_000} | {f"m{number}.py": "" for number in range(50)})


def big_sdist(suffix="tar.gz"):
    members = {"demo-1.0/PKG-INFO": PKG_INFO + " " * 50_000} | {f"demo-1.0/m{number}.py": "" for number in range(50)}
    return tar_bytes(members, format=suffix)


def test_each_limit(subtests: pytest.Subtests):
    cases_of_limits = [
        ({"max_file_bytes": 400}, "the file is larger than 400 bytes"),
        ({"max_members": 20}, "more than 20 members"),
        ({"max_metadata_bytes": 20_000}, "is larger than 20000 bytes"),
        ({"max_wanted_bytes": 40_000}, "the metadata files are larger than 40000 bytes together"),
        ({"max_kept_bytes": 40}, "more than 40 bytes of metadata without descriptions"),
        ({"max_inflated_bytes": 30_000}, "more than 30000 bytes inflated"),
        ({"seconds": 0.0}, "reading takes more than 0 seconds"),
    ]
    for limits, text in cases_of_limits:
        for content, filename in [(big_wheel(), WHEEL), (big_sdist(), SDIST)]:
            with subtests.test(content=content, limits=limits):
                assert read(content, filename).error is None
                record = read(content, filename, **limits)
                assert error_of(record).kind is ErrorKind.LIMIT_EXCEEDED
                assert text in error_of(record).text
                if "seconds" not in limits:  # time may run out before or after the last byte
                    assert (record.sha256 is None) == ("max_file_bytes" in limits)


def test_a_zip_directory_has_a_limit():
    error = error_of(read(big_wheel(), WHEEL, max_directory_bytes=2000))
    assert error == ReadError(ErrorKind.LIMIT_EXCEEDED, "the zip's directory is larger than 2000 bytes")
