"""The hints of `hints.py`, made from the catalog: for commands that read the catalog, and for past serials."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from pypi_assets.lookup.hints import Hint, Kind, best_providers, did_you_mean, module_sentence
from pypi_assets.lookup.near_names import near_names
from pypi_assets.lookup.providers import providers_of_releases

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from pypi_assets.catalog.database import Catalog

_MOST_READ = 500


def unknown_project_hints(connection: "Connection", name: str) -> Iterator[Hint]:
    """Yield guesses at what `name` may mean. There are none if the catalog knows a project of this name."""
    from pypi_assets.catalog.database import storable  # the database is slow to import
    from pypi_assets.catalog.observed.projects import find_project
    from pypi_assets.catalog.reports.live_files import next_project, providers_of_root

    name = storable(name)
    if find_project(connection, name) is not None:
        return
    if found := providers_of_root(connection, name, _MOST_READ):
        yield module_sentence(name, best_providers(name, providers_of_releases(name, found)))
    yield from did_you_mean(Kind.PROJECT, near_names(partial(next_project, connection), canonicalize_name(name)))


def past_project_hints(catalog: "Catalog", name: str) -> Iterator[Hint]:
    """Yield guesses for a lookup of the project `name` at a past serial."""
    with catalog.read() as connection:
        yield from unknown_project_hints(connection, name)


def past_module_hints(catalog: "Catalog", name: str) -> Iterator[Hint]:
    """Yield guesses at the top-level name of the module `name`, unless the catalog knows this top-level name."""
    from pypi_assets.catalog.database import storable
    from pypi_assets.catalog.reports.live_files import next_module_root

    root = storable(name).partition(".")[0]
    with catalog.read() as connection:
        seek = partial(next_module_root, connection)
        if seek(root) != root:
            yield from did_you_mean(Kind.IMPORT, near_names(seek, root))
