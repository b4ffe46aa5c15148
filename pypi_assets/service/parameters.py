"""The types of the names that routes take, with their limits."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from pypi_assets.questions.paging import MOST_PER_PAGE


def whole(pattern: str) -> str:
    r"""Return a pattern that ends in `$` for a type of msgspec. In Python, `$` also accepts a newline at the end.

    >>> whole("^[a-z]+$")
    '^[a-z]+\\Z'
    """
    return pattern.removesuffix("$") + r"\Z"


def as_json_schema(schema: Any) -> Any:
    r"""Return a schema of msgspec with `$` for each `\Z`, which JSON Schema lacks. There, `$` accepts no newline."""
    if isinstance(schema, Mapping):
        made = {name: as_json_schema(part) for name, part in schema.items()}
        pattern = made.get("pattern")
        return made | {"pattern": re.sub(r"\\Z$", "$", pattern)} if isinstance(pattern, str) else made
    return list(map(as_json_schema, schema)) if isinstance(schema, list | tuple) else schema


ModuleName = Annotated[
    str, Meta(min_length=1, max_length=1_000, description="the dotted name of a module, such as yaml.nodes")
]
ProjectName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=300,
        pattern=whole(r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$"),
        description="the name of a project, in any spelling: up to 300 ASCII letters, digits, and . _ - between them",
    ),
]
VersionText = Annotated[str, Meta(min_length=1, max_length=300, description="a version, such as 2.32.3")]
ImportName = Annotated[
    str, Meta(min_length=1, max_length=1_000, description="a name that is imported, such as google.cloud.storage")
]
CommandName = Annotated[str, Meta(min_length=1, max_length=300, description="the name of a command, such as http")]
Sha256 = Annotated[
    str, Meta(pattern=whole("^[0-9A-Fa-f]{64}$"), description="a sha256: 64 hex digits, in upper or lower case")
]
Limit = Annotated[int, Meta(ge=1, le=MOST_PER_PAGE, description=f"the most results of a page: 1 to {MOST_PER_PAGE}")]
CursorText = Annotated[
    str, Meta(min_length=1, max_length=4_000, description="`next` of the page before, with the same other parameters")
]
