"""Decides which layers of the newest export the next export keeps. It only compares: `changes.py` writes a new layer.

A change of 4,000 rows and one of 1,000 are joined into one layer, and so on, so an export has few layers, and each
change is written a few times. Once there are many changes, the rows are written again.
"""

from collections.abc import Callable, Sequence

from pypi_assets.catalog.publications.dump_registry import Dump
from pypi_assets.parquet.export_manifest import PARQUET_COLUMNS, Export, ExportLayer

GROWTH = 4
"""A layer stays separate if it has more than this many times the rows of the dumps that follow it."""
CHANGES_SHARE = 8
"""Rows are written again when the changes are more than one of this many rows: queries read the changes too."""
MOST_CHANGES = 1_000_000
"""The keys of all changes fit into memory, here and in the engines that query."""


def layers_to_keep(
    newest: Export | None, cover: Sequence[Dump], rows_of: Callable[[Dump], int]
) -> tuple[tuple[ExportLayer, ...], tuple[Dump, ...]] | None:
    """Return the layers of `newest` that stay, and the dumps of `cover` for one more layer; None: begin from scratch.

    `rows_of` returns the number of rows of a dump.
    """
    if newest is None or not newest.buckets or newest.columns != tuple(PARQUET_COLUMNS):
        return None
    for count in range(len(newest.layers), 0, -1):
        kept = newest.layers[:count]
        held = kept[-1].held
        following = None if held is None else held.following(cover)
        if following is None:
            continue
        rows = sum(map(rows_of, following))
        if count > 1 and kept[-1].rows <= GROWTH * rows:
            continue
        changes = sum(layer.rows for layer in kept[1:]) + rows
        if changes > min(kept[0].rows // CHANGES_SHARE, MOST_CHANGES):
            return None
        return kept, following
    return None
