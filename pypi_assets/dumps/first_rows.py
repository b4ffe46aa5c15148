"""The first rows of a dump's file, for people to see what is in it. Reads its beginning alone, however large it is."""

import zlib
from itertools import islice, takewhile

import orjson

from pypi_assets.catalog.publications.dump_facts import DumpFile
from pypi_assets.dumps.dump_format import DumpDamagedError, Row
from pypi_assets.dumps.dump_paths import file_path
from pypi_assets.storage.store import NotFoundError, Storage

READ_BYTES = 64 * 1024
_INFLATED_BYTES = 1024 * 1024
_GZIP = 31


def first_rows(storage: Storage, directory: str, file: DumpFile, count: int = 10) -> list[Row]:
    """At most `count` rows, in order: those that end within the first 64 KiB of the file and the first MiB of its text.

    Whether the file is whole is not checked (`iter_rows` does that). Raises DumpDamagedError where it is missing or its
    beginning cannot be read.
    """
    path = file_path(directory, file.name)
    try:
        start = storage.get_range(path, 0, min(file.size, READ_BYTES))
        text = zlib.decompressobj(_GZIP).decompress(start, _INFLATED_BYTES)
        whole = text.split(b"\n")[1:-1]  # after the line of the bracket; the last line can be a part of a row
        rows = takewhile(lambda line: line != b"]", whole)
        return [orjson.loads(line.removesuffix(b",")) for line in islice(rows, count)]
    except NotFoundError as error:
        raise DumpDamagedError(f"{storage.uri(path)} is missing, though its manifest names it") from error
    except (zlib.error, orjson.JSONDecodeError) as error:
        raise DumpDamagedError(f"the beginning of {storage.uri(path)} cannot be read: {error}") from error
