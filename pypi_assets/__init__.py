"""pypi-assets keeps an exact, queryable copy of the state of a Python package index.

`connect` returns a client that answers questions about the index. Importing this package imports nothing else.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypi_assets.client import connect as connect

__all__ = ["connect"]


def __getattr__(name: str) -> Any:
    if name == "connect":
        from pypi_assets.client import connect

        return connect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
