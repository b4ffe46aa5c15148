"""What a reader's parent reads for it, by what the source can do."""

import io

import pytest

from pypi_assets.distributions.reader_process import BytesAt, NextBytes, Ready, Sidecar
from pypi_assets.distributions.record import DistributionKind
from pypi_assets.distributions.served_sources import answer_from, as_ranges, end_of
from pypi_assets.distributions.sources import FileSource, SourceError
from pypi_assets_tests.builders import zip_bytes


class Stream(io.BytesIO):
    """Bytes that can only be read forward."""

    def seekable(self) -> bool:
        return False


def test_what_can_be_sought_in_is_a_range_source_where_it_is_a_zip() -> None:
    zipped, other = zip_bytes({"a": b""}), b"no zip"
    ranges = FileSource(io.BytesIO(zipped))
    assert as_ranges(ranges, "demo-1.0-py3-none-any.whl", DistributionKind.WHEEL) is ranges
    for filename, kind, content, is_zip in (
        ("demo-1.0-py3-none-any.whl", DistributionKind.WHEEL, zipped, True),
        ("demo-1.0-py3-none-any.whl", DistributionKind.WHEEL, other, True),
        ("demo-1.0.zip", DistributionKind.SDIST, zipped, True),
        ("demo-1.0.ZIP", DistributionKind.SDIST, zipped, True),
        ("demo-1.0.zip", DistributionKind.SDIST, other, False),
        ("demo-1.0.tar.gz", DistributionKind.SDIST, zipped, False),
    ):
        file = io.BytesIO(content)
        assert (as_ranges(file, filename, kind) is not None) == is_zip
        assert as_ranges(Stream(content), filename, kind) is None
        assert is_zip or file.tell() == 0


def test_each_source_answers_the_questions_of_its_kind() -> None:
    ranges = FileSource(io.BytesIO(b"0123456789"))
    stream = io.BytesIO(b"abc")
    answers = [
        (BytesAt(2, 3), ranges, b"234"),
        (Sidecar(), ranges, None),
        (NextBytes(2), None, b"ab"),
    ]
    for question, of, expected in answers:
        fetch = answer_from(stream, of, question)
        assert fetch is not None
        assert fetch() == expected
    for wrong, of in ((NextBytes(2), ranges), (BytesAt(0, 1), None), (Sidecar(), None), (Ready([]), ranges)):
        assert answer_from(stream, of, wrong) is None


def test_where_the_end_fails_the_source_s_own_error_comes_up() -> None:
    class Failing(FileSource):
        def read_at(self, offset: int, size: int) -> bytes:
            raise SourceError(OSError("disk"))

    assert end_of(FileSource(io.BytesIO(b"0123456789"))) == b"0123456789"
    with pytest.raises(OSError, match="disk"):
        end_of(Failing(io.BytesIO(b"0")))
