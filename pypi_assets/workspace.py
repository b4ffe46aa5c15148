"""The Dagster code locations of several indexes: one for each, all from one module. It does not import Dagster.

The default index has the code location and the keys of an installation with a single index. The content of a location
is in `defs/`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pypi_assets.indexes import IndexTable

MODULE = "pypi_assets.definitions"
DEFAULT_LOCATION = "pypi-assets"
ATTRIBUTE_PREFIX = "index_"
"""The prefix of the module's attributes with the definitions of an index, such as `index_company`."""

SEPARATOR = "__"
"""The separator after the name of an index, which never has two underscores in a row."""


def name_in_dagster(index: str) -> str:
    """Return the name of an index for Dagster's names, which have no hyphens."""
    return index.replace("-", "_")


def prefix_in_dagster(table: IndexTable | None) -> str:
    """Return the prefix of an index's jobs and sensors; empty for the default index."""
    return "" if table is None or table.is_default else name_in_dagster(table.name) + SEPARATOR


@dataclass(frozen=True, slots=True)
class CodeLocation:
    """A code location: its name, and the attribute of `module` with its definitions; empty for the whole module."""

    name: str = DEFAULT_LOCATION
    attribute: str = ""
    module: str = MODULE

    @property
    def is_default(self) -> bool:
        return not self.attribute


def code_location(table: IndexTable) -> CodeLocation:
    """Return the code location of an index."""
    if table.is_default:
        return CodeLocation()
    return CodeLocation(f"{DEFAULT_LOCATION}-{table.name}", f"{ATTRIBUTE_PREFIX}{name_in_dagster(table.name)}")


def workspace_yaml(tables: Iterable[IndexTable]) -> str:
    """Return the content of a workspace.yaml with a code location for each index."""
    lines = ["load_from:"]
    for location in map(code_location, tables):
        lines += ["  - python_module:", f"      module_name: {location.module}"]
        if location.attribute:
            lines.append(f"      attribute: {location.attribute}")
        lines.append(f"      location_name: {location.name}")
    return "\n".join(lines) + "\n"
