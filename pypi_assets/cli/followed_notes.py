"""Notes that commands print if scopes decide which projects are followed.

They say how many projects an answer covers, and why an answer about a project is missing.
"""

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from pypi_assets.terminal import counted

if TYPE_CHECKING:
    from contextlib import ExitStack

    from sqlalchemy import Connection

    from pypi_assets.catalog.database import Catalog
    from pypi_assets.catalog.reports.project_following import ProjectFollowing

_NOT_SEARCHED = "projects that are not followed are not searched: `pypi-assets scope create NAME PROJECT ...` adds some"


def among(followed_projects: int | None) -> str:
    """Return the end of a message about an answer; empty if the whole index is followed.

    >>> among(6)
    ', among 6 followed projects'
    """
    return "" if followed_projects is None else f", among {counted(followed_projects, 'followed project')}"


def not_searched(followed_projects: int | None) -> Iterator[str]:
    """Yield a sentence about projects that are not followed; nothing if the whole index is followed."""
    if followed_projects is not None:
        yield _NOT_SEARCHED


class VersionNotes:
    """Explains why LevelDB versions may have no answer.

    The catalog is opened for the first note that needs it, and closed with `stack`. A mirror may have no catalog.
    """

    def __init__(self, stack: "ExitStack") -> None:
        self._stack = stack
        self._catalog: Catalog | None = None
        self._is_missing = False

    def __call__(self, project: str | None, serial: int, followed_projects: int | None) -> Iterator[str]:
        """Yield the reason why a version at `serial` may not have `project`, or any project if it is None."""
        if followed_projects is None:
            return
        if project is None:
            yield from not_searched(followed_projects)
            return
        from pypi_assets.catalog.reports.project_following import unpublished_sentence

        catalog = self.catalog()
        if catalog is None:
            yield f"{project} may not be among the followed projects; other projects are not known"
            return
        with catalog.read() as connection:
            sentence = unpublished_sentence(connection, project, serial)
        if sentence:
            yield sentence

    def catalog(self) -> "Catalog | None":
        """Return the home's catalog, which the first call opens; None if it is missing."""
        from pypi_assets.catalog.database import CatalogError
        from pypi_assets.components import existing_catalog_from
        from pypi_assets.settings import SettingsError, load_settings

        if self._catalog is None and not self._is_missing:
            try:
                self._catalog = self._stack.enter_context(closing(existing_catalog_from(load_settings())))
            except (CatalogError, SettingsError):
                self._is_missing = True
        return self._catalog


def catalog_notes(
    connection: "Connection", project: str | None, serial: int, followed_projects: int | None
) -> Iterator[str]:
    """Yield the reason why the catalog at `serial` may not have `project`, or any project if it is None."""
    from pypi_assets.catalog.reports.project_following import following_at

    if followed_projects is None:
        return
    if project is None:
        yield from not_searched(followed_projects)
    else:
        yield from note_of(following_at(connection, project, serial))


def note_of(following: "ProjectFollowing | None") -> Iterator[str]:
    """Yield the reason why an answer about a project is missing, if known."""
    if following is not None and (sentence := following.sentence()):
        yield sentence
