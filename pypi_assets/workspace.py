"""What Dagster loads of several indexes: a code location each, all from one module. Imports no Dagster.

The default index has the location, and the keys, of before there were several. What a location has is in `defs/`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pypi_assets.indexes import IndexTable

MODULE = "pypi_assets.definitions"
DEFAULT_LOCATION = "pypi-assets"
ATTRIBUTE_PREFIX = "index_"
"""Of the attributes of the module that are the definitions of an index, such as `index_company`."""

SEPARATOR = "__"
"""Between the name of an index, which has no two underscores in a row, and what is named."""


def name_in_dagster(index: str) -> str:
    """The name of an index as a part of Dagster's names, which have no hyphens."""
    return index.replace("-", "_")


def prefix_in_dagster(table: IndexTable | None) -> str:
    """Return what the names of jobs and sensors of an index begin with; empty for the default index."""
    return "" if table is None or table.is_default else name_in_dagster(table.name) + SEPARATOR


@dataclass(frozen=True, slots=True)
class CodeLocation:
    """A code location: its name, and the attribute of `module` that has its definitions, or none for all of it."""

    name: str = DEFAULT_LOCATION
    attribute: str = ""
    module: str = MODULE

    @property
    def is_default(self) -> bool:
        return not self.attribute


def code_location(table: IndexTable) -> CodeLocation:
    """The code location of an index."""
    if table.is_default:
        return CodeLocation()
    return CodeLocation(f"{DEFAULT_LOCATION}-{table.name}", f"{ATTRIBUTE_PREFIX}{name_in_dagster(table.name)}")


def workspace_yaml(tables: Iterable[IndexTable]) -> str:
    """The content of a workspace.yaml with a code location for each index."""
    lines = ["load_from:"]
    for location in map(code_location, tables):
        lines += ["  - python_module:", f"      module_name: {location.module}"]
        if location.attribute:
            lines.append(f"      attribute: {location.attribute}")
        lines.append(f"      location_name: {location.name}")
    return "\n".join(lines) + "\n"
