"""Registry of the kinds of index: the built-in kinds, and kinds that other packages add.

A package adds a kind with an entry point in the group `pypi_assets.indexes`. The entry point's object is an
`IndexKind`; see docs/indexes.md. The methods that an index must have are in `protocol.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from pypi_assets.errors import SettingsError
from pypi_assets.index.client import IndexClient
from pypi_assets.index.kind_names import AUTO, PAGES, SIMPLE, XMLRPC, added_kinds, require_kind
from pypi_assets.index.observing.observed_index import ObservedIndex
from pypi_assets.index.observing.page_source import SimplePages
from pypi_assets.index.observing.round_state import Memory, PollingPolicy
from pypi_assets.index.observing.shown_pages import PageSource
from pypi_assets.index.protocol import PackageIndex


class NoMemoryError(SettingsError):
    """An index without serials needs an open catalog, since the catalog holds the state of the index."""


@dataclass(frozen=True)
class IndexParts:
    """The parts that an index is built from.

    `client` sends requests politely, to the index and to the hosts of its files. `projects` are the normalized names
    that the settings select; an empty set selects all projects. `memory` stores the state of an index without serials;
    it is None if no catalog is open. `policy`, `at_once` (parallel requests) and `round_s` (the longest duration of a
    round in seconds) apply to polling such an index.
    """

    client: IndexClient
    projects: frozenset[str] = frozenset()
    memory: Memory | None = None
    policy: PollingPolicy = field(default_factory=PollingPolicy)
    at_once: int = 10
    round_s: float | None = None

    def observed(self, source: PageSource) -> PackageIndex:
        """Return an index that polls the pages of `source`. Raises NoMemoryError if no catalog is open."""
        if self.memory is None:
            raise NoMemoryError("an index without serials needs an open catalog for its state, and none is open")
        return ObservedIndex(
            self.client,
            source,
            self.memory,
            self.policy,
            self.projects,
            at_once=self.at_once,
            round_s=self.round_s,
        )


@dataclass(frozen=True)
class IndexKind:
    """A kind of index. `open` creates an index from its parts.

    `PackageIndex.close` must close everything that `open` opened.

        kind = IndexKind("artifacts", lambda parts: Artifacts(parts.client))
    """

    name: str
    open: Callable[[IndexParts], PackageIndex]


def _client(parts: IndexParts) -> PackageIndex:
    return parts.client


def _pages(parts: IndexParts) -> PackageIndex:
    return parts.observed(SimplePages(parts.client))


REGISTRY = {name: IndexKind(name, _client) for name in (AUTO, XMLRPC, SIMPLE)} | {PAGES: IndexKind(PAGES, _pages)}
"""The built-in kinds. `crawl/listers.py` decides how the first three differ."""


def kind_named(name: str) -> IndexKind:
    """Return the kind of index with this name.

    Raises SettingsError if there is no such kind, or if the package that adds it cannot be loaded.
    """
    if name in REGISTRY:
        return REGISTRY[name]
    try:
        require_kind(name)
    except ValueError as error:
        raise SettingsError(f"PYPI_ASSETS_LISTER: {error}") from error
    try:
        kind = added_kinds()[name].load()
    except Exception as error:  # another package can raise anything when it is imported
        raise SettingsError(f"the kind of index {name!r} cannot be loaded: {type(error).__name__}: {error}") from error
    if not isinstance(kind, IndexKind):
        raise SettingsError(f"the kind of index {name!r} is not an IndexKind: its package has a {type(kind).__name__}")
    return kind
