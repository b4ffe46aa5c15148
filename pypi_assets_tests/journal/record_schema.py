"""The columns in the JSON Schema of the journal's records, generated from their declaration. Run as a module to write
the file.
"""

import json
from pathlib import Path
from typing import Any

import pypi_assets.journal
from pypi_assets.catalog.publications.dump_columns import COLUMNS
from pypi_assets.catalog.publications.dump_rows import CONTENT, EARLIEST_CONTENT

SCHEMA = Path(pypi_assets.journal.__file__).parent / "record.schema.json"


def rendered(schema: str) -> str:
    """Return the schema with the current columns."""
    document = json.loads(schema)
    for part in document["allOf"]:
        then = part["then"]
        if "outcome" in then["properties"]:
            then["properties"] |= {name: _schema_of(COLUMNS[name].type) for name in CONTENT}
            then["required"] = ["cause", "version", "filename", "sha256", *EARLIEST_CONTENT]
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _schema_of(type_: str) -> dict[str, Any]:
    first, *null = type_.split(" or ")
    name = "array" if first == "array of strings" else first
    items = {"items": {"type": "string"}} if name == "array" else {}
    return {"type": [name, *null] if null else name, **items}


if __name__ == "__main__":
    SCHEMA.write_text(rendered(SCHEMA.read_text()))
