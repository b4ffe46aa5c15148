"""The files of a project as the dataset `depgraph` sees them."""

from collections.abc import Sequence
from typing import Any, NamedTuple


class File(NamedTuple):
    """A file. `shared` is the JSON of what it may have in common with others, `own` has the values of OWN_FIELDS."""

    version: str
    shared: bytes
    own: Sequence[Any]


Files = dict[str, File]
"""By filename."""
