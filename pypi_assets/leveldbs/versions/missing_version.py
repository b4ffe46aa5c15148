"""Explains why a dataset has no readable version, and the remedy: one wording for look-ups and commands."""

from collections.abc import Mapping

from pypi_assets.dumps.cover import Cover
from pypi_assets.dumps.dump_format import DumpDamagedError
from pypi_assets.dumps.stored_cover import stored_cover
from pypi_assets.errors import FIRST_COMMANDS
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.format.leveldb_errors import NoVersionError
from pypi_assets.leveldbs.versions.build_need import missing_columns, not_built_yet
from pypi_assets.storage.store import Storage


def no_version(dataset: Dataset, storage: Storage, unreadable: Mapping[int, str] | None = None) -> NoVersionError:
    """Return the error that explains why `dataset` has no readable version.

    `unreadable` has the reason for each published version; without it, none is published. The error is a
    NotBuiltYetError if dumps lack columns that the dataset needs. It includes the reasons in `unreadable` too, since no
    older version can answer in the meantime. Reads the manifests of all dumps. Raises StorageError.

        >>> str(no_version(HASHES, storage))
        'hashes is not built yet: no version of it is published in s3://...; run `pypi-assets leveldb update`'
    """
    cover = _known_cover(storage)
    columns_of = {dump.directory: dump.columns for dump in cover.dumps} if cover is not None else {}
    reasons = [f"version {version}: {reason}" for version, reason in (unreadable or {}).items()]
    if missing := missing_columns(dataset, columns_of):
        return not_built_yet(dataset, missing, reasons)
    if reasons:
        return NoVersionError(
            f"there is no version of {dataset.name} to read in {storage.url} ({'; '.join(reasons)}): run"
            " `pypi-assets leveldb update`"
        )
    if cover is not None and not cover.dumps:
        return NoVersionError(
            f"{dataset.name} is not built yet: there is no full dump in {storage.url}; {FIRST_COMMANDS}"
        )
    return NoVersionError(
        f"{dataset.name} is not built yet: no version of it is published in {storage.url}; run"
        " `pypi-assets leveldb update`"
    )


def _known_cover(storage: Storage) -> Cover | None:
    """Return the cover of the stored dumps, or None if a manifest is corrupt."""
    try:
        return stored_cover(storage)
    except DumpDamagedError:
        return None
