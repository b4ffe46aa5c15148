"""Extracts made from paths and contents, without an archive."""

from collections.abc import Iterable

from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.members import folders_of


def extract_of(paths: Iterable[str], files: dict[str, bytes] | None = None) -> Extract:
    """The extract of an archive with files at `paths`, each of them once. `files` are those that were kept."""
    return Extract(folders_of(paths), files or {})
