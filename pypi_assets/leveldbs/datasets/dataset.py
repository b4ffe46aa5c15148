"""The definition of a dataset, from which its asset, checks, sensor, look-ups and documentation are generated."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pypi_assets.leveldbs.format.leveldb_binding import Database
from pypi_assets.leveldbs.format.records import Records, Row

Change = tuple[Records, Records]
"""Records before and after a change. A record that is in neither stays the same."""


class ChangedRecords(Protocol):
    """Collects the changes of an update that the files beside a LevelDB need."""

    def see(self, db: Database, project: str, before: Records, after: Records, /) -> None:
        """Note a Change of a project before it is written."""


class WriteFiles(Protocol):
    """Writes the files beside a LevelDB."""

    def __call__(
        self, db: Database, folder: Path, name: str, changed: Any = None, waiting: Callable[[], object] = int, /
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class SideFiles:
    """The files of a dataset that are made from its records, and published beside its LevelDB.

    - `suffix` is the end of their names. They never change, and no other file ever has the name.
    - `changes(content_hash)` returns an object that collects the changes of an update. The hash is that of the records
      before it.
    - `write(db, folder, name, changed, waiting)` writes the file `name` with the suffix into the folder of the LevelDB,
      and deletes files that are not needed any more. `changed` has the changes since the version whose files are there,
      or is None. `waiting` is called now and then.
    - `open(db, folder, checked)` opens the files for a reader. `checked` is true if their hashes were compared.
    - `check(folder)` reads the files and raises LeveldbDamagedError if they are not valid, whatever the records are.
    - `problem(db, folder, working)` compares the files with the records, using an empty folder. It returns the first
      difference, or None.
    """

    suffix: str
    changes: Callable[[str], ChangedRecords]
    write: WriteFiles
    open: Callable[[Database, Path, bool], Any]
    check: Callable[[Path], None]
    problem: Callable[[Database, Path, Path], str | None]


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
    - `side_files` are files beside the LevelDB, if there are any.
    - `update_cost` is how many rows a build from scratch applies in the time in which an update applies one.
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
    side_files: SideFiles | None = None
    update_cost: int = 8
