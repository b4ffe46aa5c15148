"""Where locks have the URLs of files from: what pages of the Simple API show, as of the serial of a resolution."""

from typing import TYPE_CHECKING, Protocol

from pypi_assets.lookup.simple_reader import SimpleReader

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog
    from pypi_assets.catalog.reports.simple_page import SimpleFile, SimplePage


class Pages(Protocol):
    """The files that the page of a project shows, by filename."""

    def files(self, project: str) -> "dict[str, SimpleFile]":
        """Those of a project (normalized)."""
        ...


class PublishedPages:
    """Those of a published version of `simple`."""

    def __init__(self, simple: SimpleReader) -> None:
        self._simple = simple

    def files(self, project: str) -> "dict[str, SimpleFile]":
        return _by_name(self._simple.page(project))


class PastPages:
    """Those of the catalog at a serial that it can answer for."""

    def __init__(self, catalog: "Catalog", serial: int) -> None:
        self._catalog, self._serial = catalog, serial

    def files(self, project: str) -> "dict[str, SimpleFile]":
        from pypi_assets.catalog.reports.past_pages import page_at  # the database takes long to load

        return _by_name(page_at(self._catalog, self._serial, project))


def _by_name(page: "SimplePage | None") -> "dict[str, SimpleFile]":
    return {} if page is None else {file.filename: file for file in page.files}
