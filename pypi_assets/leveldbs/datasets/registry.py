"""The datasets that are built: each turns the rows of one project into a change of records."""

from collections.abc import Callable
from dataclasses import dataclass

import plyvel

from pypi_assets.leveldbs.datasets.depgraph import records as depgraph
from pypi_assets.leveldbs.datasets.modules import records as modules
from pypi_assets.leveldbs.format.records import LeveldbError, Records, Row

Change = tuple[Records, Records]
"""Records as they are and as they are to be; those in neither are left alone."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """`change(db, project, rows)` reads what is there of a project (`db` None: nothing) and applies its new rows.

    `columns` are those of the rows that it looks at.
    """

    name: str
    format: int
    columns: tuple[str, ...]
    change: Callable[[plyvel.DB | None, str, list[Row]], Change]


DATASETS = {
    "modules": Dataset("modules", modules.FORMAT, modules.COLUMNS, modules.change),
    "depgraph": Dataset("depgraph", depgraph.FORMAT, depgraph.COLUMNS, depgraph.change),
}


def require_dataset(name: str) -> Dataset:
    """Raises LeveldbError for a name that is none of the datasets'."""
    if name not in DATASETS:
        raise LeveldbError(f"there is no dataset {name!r}; there are {', '.join(DATASETS)}")
    return DATASETS[name]
