"""Extracts made from paths and contents, without an archive."""

from collections.abc import Iterable

from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.members import folders_of


def extract_of(paths: Iterable[str], files: dict[str, bytes] | None = None) -> Extract:
    """Return the extract of an archive with one file at each of `paths`. `files` are the files with stored content."""
    return Extract(folders_of(paths), files or {})
