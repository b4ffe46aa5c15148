"""What Dagster loads of several indexes: a code location each, all from one module. Imports no Dagster.

The default index has the location, and the keys, of before there were several. What a location has is in `defs/`.
"""

from collections.abc import Iterable

from pypi_assets.indexes import IndexTable

MODULE = "pypi_assets.definitions"
DEFAULT_LOCATION = "pypi-assets"
ATTRIBUTE_PREFIX = "index_"
"""Of the attributes of the module that are the definitions of an index, such as `index_company`."""


def name_in_dagster(index: str) -> str:
    """The name of an index as a part of Dagster's names, which have no hyphens."""
    return index.replace("-", "_")


def workspace_yaml(tables: Iterable[IndexTable]) -> str:
    """The content of a workspace.yaml with a code location for each index."""
    lines = ["load_from:"]
    for table in tables:
        lines += ["  - python_module:", f"      module_name: {MODULE}"]
        if not table.is_default:
            lines.append(f"      attribute: {ATTRIBUTE_PREFIX}{name_in_dagster(table.name)}")
        lines.append(f"      location_name: {location_name(table)}")
    return "\n".join(lines) + "\n"


def location_name(table: IndexTable) -> str:
    """The name of an index's code location."""
    return DEFAULT_LOCATION if table.is_default else f"{DEFAULT_LOCATION}-{table.name}"
