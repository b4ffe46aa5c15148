"""What a LevelDB stores inside about itself."""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from pypi_assets.leveldbs.format.errors import LeveldbDamagedError, UnknownFormatError
from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.records import scan

META_PREFIX = b"\0"


@dataclass(frozen=True, slots=True)
class Meta:
    """What is stored inside a LevelDB about itself. `counts` are numbers of records by the first letter of the key;
    `content_hash` is the sum, modulo 2**256, of the hashes of all records but these, in hex.
    """

    dataset: str
    format: int
    serial: int
    counts: Mapping[str, int]
    content_hash: str


def read_meta(db: Database, name: str, *, dataset: str, known_format: int) -> Meta:
    """Returns what the LevelDB records about itself. Raises UnknownFormatError, or LeveldbDamagedError without it."""
    found = {record_key.removeprefix(META_PREFIX).decode(): value for record_key, value in scan(db, META_PREFIX)}
    try:
        values = {field: orjson.loads(value) for field, value in found.items()}
        if values["dataset"] != dataset or values["format"] != known_format:
            raise UnknownFormatError(
                f"{name} is {values['dataset']} in format {values['format']}, and this pypi-assets reads"
                f" {dataset} in format {known_format}: {_remedy(values['format'], known_format)}"
            )
        return Meta(dataset, known_format, values["serial"], values["counts"], values["content_hash"])
    except (KeyError, TypeError, orjson.JSONDecodeError) as error:
        raise LeveldbDamagedError(f"{name} has no readable record about itself: {error!r}") from error


def _remedy(found: object, known: int) -> str:
    if isinstance(found, int) and found < known:
        return "an older pypi-assets built it; `pypi-assets leveldb update` builds a version that can be read"
    return "a newer pypi-assets built it; upgrade this one"


def write_meta(db: Database, meta: Meta) -> None:
    values = {
        "dataset": meta.dataset,
        "format": meta.format,
        "serial": meta.serial,
        "counts": meta.counts,
        "content_hash": meta.content_hash,
    }
    with db.write_batch() as batch:
        for field, value in values.items():
            batch.put(META_PREFIX + field.encode(), orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
