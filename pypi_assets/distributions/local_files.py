"""Has a file on disk read by a contained reader process, and hashes it here: hashing parses nothing."""

from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

from pypi_assets.distributions.extract import Extract, encode_extract
from pypi_assets.distributions.limits import Budget, LimitExceededError
from pypi_assets.distributions.reader import make_record
from pypi_assets.distributions.reader_pool import FinishedReading, ReaderPool
from pypi_assets.distributions.record import ErrorKind
from pypi_assets.distributions.sources import RangeSourceError, SequentialSource


class _Stream:
    """What is hashed on its way to a reader, where it can be read only once: of a pipe, for one."""

    def __init__(self, hashed: SequentialSource) -> None:
        self.read = hashed.read

    def seekable(self) -> bool:
        return False


def read_local(path: Path, readers: ReaderPool) -> FinishedReading:
    """What one of `readers` makes of the file at `path`, with its sha256 and size: the record that `read_path` makes.

    Never raises at bad content: a reader that dies has a record with that error. Raises OSError where the file can't
    be read, and ReaderStartError.
    """
    with path.open("rb") as file:
        hashed = SequentialSource(file, Budget(readers.limits))
        try:
            if file.seekable():
                hashed.drain()
                file.seek(0)
                finished = readers.read(file, path.name)
            else:
                finished = readers.read(cast("BinaryIO", _Stream(hashed)), path.name)
                hashed.drain()
        except LimitExceededError as error:
            extract = Extract()
            extract.fail(ErrorKind.LIMIT_EXCEEDED, str(error))
            return FinishedReading(make_record(extract, path.name), encode_extract(extract))
        except RangeSourceError as error:
            raise error.error from None
    return replace(finished, record=replace(finished.record, sha256=hashed.sha256, size=hashed.size))
