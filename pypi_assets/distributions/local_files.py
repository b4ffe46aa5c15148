"""Read a local file with a contained reader process, and hash it in this process, since hashing parses nothing."""

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
    """A stream that is hashed on its way to a reader, for sources such as pipes that can be read only once."""

    def __init__(self, hashed: SequentialSource) -> None:
        self.read = hashed.read

    def seekable(self) -> bool:
        return False


def read_local(path: Path, readers: ReaderPool) -> FinishedReading:
    """Return the record that one of `readers` makes of the file at `path`, with its sha256 and size, and its extract.

    `read_path` returns the same record. Bad content never raises: if a reader dies, the record has that error. Raise
    OSError if the file cannot be read, and ReaderStartError if no reader starts.
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
