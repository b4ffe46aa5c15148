"""What a dataset is: the entry from which its asset, checks, sensor, look-ups and documentation follow."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.records import Records, Row

Change = tuple[Records, Records]
"""Records before and after; a record in neither stays as it is."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """The entry of a dataset.

    `change(db, project, rows)` applies the new rows of one project. It reads the project's records from `db`, or none
    where `db` is None, and returns a Change. The result must not depend on the order of rows in different dumps.

    `columns` are the columns of dumps that `change` reads. A dump that lacks one of them cannot be applied.
    `format` is raised whenever the records change; versions in another format are rebuilt.
    `description` is one sentence for people. `reader` is the dotted name of the module that reads the dataset: it
    defines `READER` and `COMMANDS` (see `pypi_assets.lookup.reader`).
    `tallied` are two letters, such as `r` and `t`: for each second part X of the keys `r X ...`, the record `t X` holds
    how many these are. Builds keep these records; `change` neither returns nor reads them. The second letter is the
    greater one.
    `key_schema` names the parts of each kind of key, such as `m MODULE PROJECT`, and what its value is, for people.
    """

    name: str
    format: int
    description: str
    columns: tuple[str, ...]
    change: Callable[[Database | None, str, list[Row]], Change]
    reader: str
    key_schema: Mapping[str, str]
    tallied: tuple[str, str] | None = None
