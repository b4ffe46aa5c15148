"""The kinds of index: the built-in ones, and those that other packages add by an entry point; one registry for both.

A package adds a kind by an entry point of the group `pypi_assets.indexes`, whose object is an `IndexKind`; see
docs/new-index.md. What an index must give is in `protocol.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pypi_assets.errors import SettingsError
from pypi_assets.index.client import IndexClient
from pypi_assets.index.kind_names import AUTO, SIMPLE, XMLRPC, added_kinds, require_kind
from pypi_assets.index.protocol import PackageIndex


@dataclass(frozen=True)
class IndexParts:
    """What an index is made from.

    `client` sends requests politely, to the index and to the hosts of files. `projects` are the normalized names that
    the settings choose, empty for all.
    """

    client: IndexClient
    projects: frozenset[str] = frozenset()


@dataclass(frozen=True)
class IndexKind:
    """A kind of index. `open` makes one from its parts; what it opens, `PackageIndex.close` closes.

    kind = IndexKind("artifacts", lambda parts: Artifacts(parts.client))
    """

    name: str
    open: Callable[[IndexParts], PackageIndex]


def _client(parts: IndexParts) -> PackageIndex:
    return parts.client


REGISTRY = {name: IndexKind(name, _client) for name in (AUTO, XMLRPC, SIMPLE)}
"""The built-in kinds. How these three differ is decided in `crawl/lister_choice.py`."""


def kind_named(name: str) -> IndexKind:
    """The kind of this name. Raises SettingsError where there is none, or where the package that adds it is broken."""
    if name in REGISTRY:
        return REGISTRY[name]
    try:
        require_kind(name)
    except ValueError as error:
        raise SettingsError(f"PYPI_ASSETS_LISTER: {error}") from error
    try:
        kind = added_kinds()[name].load()
    except Exception as error:  # whatever a package of others raises when it is imported
        raise SettingsError(f"the kind of index {name!r} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(kind, IndexKind):
        raise SettingsError(f"the kind of index {name!r} is no IndexKind: its package gives a {type(kind).__name__}")
    return kind
