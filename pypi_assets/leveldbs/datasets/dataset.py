"""The definition of a dataset, from which its asset, checks, sensor, look-ups and documentation are generated."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.records import Records, Row

Change = tuple[Records, Records]
"""Records before and after a change. A record that is in neither stays the same."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """The definition of a dataset.

    `change(db, project, rows)` applies the new rows of one project and returns a Change. It reads the project's records
    from `db`; if `db` is None, there are none. The result must not depend on how the rows are distributed over dumps.

    - `columns` are the dump columns that `change` reads. A dump that lacks one of them cannot be applied.
    - `format` must be raised whenever the records change. Versions in another format are rebuilt.
    - `description` is one sentence for people.
    - `reader` is the dotted name of the module that reads the dataset and defines `READER` (see
      `pypi_assets.lookup.reader`).
    - `tallied` are two letters, such as `r` and `t`. For each second part X of the keys `r X ...`, the record `t X` has
      the number of these keys. Builds maintain these records, and `change` neither returns nor reads them. The second
      letter must be the greater one.
    - `key_schema` maps each kind of key, such as `m MODULE PROJECT`, to a description of its value for people.
    """

    name: str
    format: int
    description: str
    columns: tuple[str, ...]
    change: Callable[[Database | None, str, list[Row]], Change]
    reader: str
    key_schema: Mapping[str, str]
    tallied: tuple[str, str] | None = None
