"""The names of the kinds of index, which the setting PYPI_ASSETS_LISTER chooses from. Imports no kind.

What a kind is, and how one is opened, is in `kinds.py`.
"""

from functools import cache
from importlib.metadata import EntryPoint, entry_points

ENTRY_POINTS = "pypi_assets.indexes"
"""The group of entry points by which other packages add kinds; see docs/new-index.md."""
AUTO, XMLRPC, SIMPLE, PAGES = "auto", "xmlrpc", "simple", "pages"
BUILT_IN = (AUTO, XMLRPC, SIMPLE, PAGES)
WITH_CHANGELOG_NEXT_TO_IT = frozenset({AUTO, XMLRPC, SIMPLE})
"""The kinds whose changelog is at /pypi next to /simple/. The URL of others is where their list of projects is."""


@cache
def added_kinds() -> dict[str, EntryPoint]:
    """The kinds that installed packages add, by name. A built-in one cannot be replaced."""
    return {point.name: point for point in entry_points(group=ENTRY_POINTS) if point.name not in BUILT_IN}


def require_kind(name: str) -> None:
    """Raises ValueError where no kind has this name."""
    if name in BUILT_IN or name in added_kinds():
        return
    *others, last = (f"'{known}'" for known in (*BUILT_IN, *sorted(added_kinds())))
    raise ValueError(f"{name!r} is no kind of index; here, it can be {', '.join(others)} or {last}")
