"""Whether dumps have the columns that a dataset needs. Until all of a cover have them, it is not built yet."""

from collections.abc import Collection, Mapping, Sequence

from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.format.errors import NotBuiltYetError

_NAMED_DUMPS = 3


def missing_columns(dataset: Dataset, columns_of: Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
    """The columns that `dataset` needs and a dump lacks, by the dump's directory; dumps that lack none are left out.

    `columns_of` are the columns of each dump of a cover, by directory.
    """
    lacking = {
        directory: tuple(column for column in dataset.columns if column not in columns)
        for directory, columns in columns_of.items()
    }
    return {directory: columns for directory, columns in lacking.items() if columns}


def not_built_yet(
    dataset: Dataset, missing: Mapping[str, Collection[str]], unreadable: Sequence[str] = ()
) -> NotBuiltYetError:
    """The error that names the dumps and columns that `missing_columns` found, and what to do.

    Older records lack the values of new columns, so a reprocess comes first: without older records it changes nothing.
    `unreadable` are the reasons why versions that are published cannot be read.

    >>> str(not_built_yet(COMMANDS, {"0-7": ("console_scripts",)}))
    'commands is not built yet: 1 dump of the cover (0-7) lacks the column console_scripts; run ...'
    """
    columns = list(dict.fromkeys(column for lacking in missing.values() for column in lacking))
    dumps = "1 dump" if len(missing) == 1 else f"{len(missing)} dumps"
    named = ", ".join(list(missing)[:_NAMED_DUMPS]) + (", ..." if len(missing) > _NAMED_DUMPS else "")
    lack = "lacks" if len(missing) == 1 else "lack"
    those = f"column{'s' if len(columns) > 1 else ''} {', '.join(columns)}"
    return NotBuiltYetError(
        f"{dataset.name} is not built yet: {dumps} of the cover ({named}) {lack} the {those}; run"
        " `pypi-assets admin reprocess`, `pypi-assets dump redo` and `pypi-assets leveldb update`, in this order"
        + (f" ({'; '.join(unreadable)})" if unreadable else "")
    )
