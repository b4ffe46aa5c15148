"""The kinds of index: the built-in ones, and those that other packages add by an entry point; one registry for both.

A package adds a kind by an entry point of the group `pypi_assets.indexes`, whose object is an `IndexKind`; see
docs/new-index.md. What an index must give is in `protocol.py`.
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
    """What is known of an index without serials is in its catalog, which is not open here."""


@dataclass(frozen=True)
class IndexParts:
    """What an index is made from.

    `client` sends requests politely, to the index and to the hosts of files. `projects` are the normalized names that
    the settings choose, empty for all. `memory` keeps what is known of an index without serials; None where no catalog
    is open. `policy` and `at_once` are how such an index is looked at, and `round_s` how long a round may take.
    """

    client: IndexClient
    projects: frozenset[str] = frozenset()
    memory: Memory | None = None
    policy: PollingPolicy = field(default_factory=PollingPolicy)
    at_once: int = 10
    round_s: float | None = None

    def observed(self, source: PageSource) -> PackageIndex:
        """The index whose pages `source` reads, followed by observing them. Raises NoMemoryError without a catalog."""
        if self.memory is None:
            raise NoMemoryError("an index without serials is known from its catalog alone, and none is open here")
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
    """A kind of index. `open` makes one from its parts; what it opens, `PackageIndex.close` closes.

    kind = IndexKind("artifacts", lambda parts: Artifacts(parts.client))
    """

    name: str
    open: Callable[[IndexParts], PackageIndex]


def _client(parts: IndexParts) -> PackageIndex:
    return parts.client


def _pages(parts: IndexParts) -> PackageIndex:
    return parts.observed(SimplePages(parts.client))


REGISTRY = {name: IndexKind(name, _client) for name in (AUTO, XMLRPC, SIMPLE)} | {PAGES: IndexKind(PAGES, _pages)}
"""The built-in kinds. How the first three differ is decided in `crawl/listers.py`."""


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
