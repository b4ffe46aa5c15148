"""The names of the kinds of index that PYPI_ASSETS_LISTER accepts, without importing any kind.

Kinds, and how to open an index of each kind, are defined in `kinds.py`.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points

ENTRY_POINTS = "pypi_assets.indexes"
"""The entry point group in which other packages register kinds; see docs/indexes.md."""
AUTO, XMLRPC, SIMPLE, PAGES = "auto", "xmlrpc", "simple", "pages"
BUILT_IN = (AUTO, XMLRPC, SIMPLE, PAGES)
WITH_CHANGELOG_NEXT_TO_IT = frozenset({AUTO, XMLRPC, SIMPLE})
"""The kinds that have a changelog at /pypi, next to /simple/. For other kinds, the URL is the list of projects itself.
"""


@cache
def added_kinds() -> dict[str, EntryPoint]:
    """Return the kinds that installed packages add, by name. A package cannot replace a built-in kind."""
    return {point.name: point for point in entry_points(group=ENTRY_POINTS) if point.name not in BUILT_IN}


def require_kind(name: str) -> None:
    """Raise ValueError if no kind of index has this name."""
    if name in BUILT_IN or name in added_kinds():
        return
    *others, last = (f"'{known}'" for known in (*BUILT_IN, *sorted(added_kinds())))
    raise ValueError(f"{name!r} is not a kind of index; use {', '.join(others)} or {last}")
