"""Contents of small distributions, a stream for them, and their records."""

import io

from pypi_assets.distributions.limits import ReadLimits
from pypi_assets.distributions.reader import read_distribution
from pypi_assets.distributions.record import DistributionRecord, ReadError
from pypi_assets_tests.builders import core_metadata

WHEEL = "demo-1.0-py3-none-any.whl"
SDIST = "demo-1.0.tar.gz"
METADATA = "demo-1.0.dist-info/METADATA"
PKG_INFO = core_metadata("demo", "1.0", requires_dist=["a"])


class Stream(io.BytesIO):
    """A stream of bytes that cannot seek."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: object) -> int:
        raise io.UnsupportedOperation("seek")


def read(content, filename, **limits):
    return read_distribution(io.BytesIO(content), filename, limits=ReadLimits(**limits)).record


def error_of(record: DistributionRecord) -> ReadError:
    assert record.error is not None
    return record.error
