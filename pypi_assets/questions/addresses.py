"""Routes of questions, and their paths with values filled in."""

import re
from collections.abc import Mapping
from urllib.parse import quote

_PARAMETER = re.compile(r"{(\w+)(?::\w+)?}")
STEPS = (".", "..")
"""Values that a path cannot contain, because clients resolve them as the current or the parent folder."""


def names_in(path: str) -> frozenset[str]:
    """Return the names of the parameters in a path.

    >>> sorted(names_in("/v1/projects/{project}/{version}"))
    ['project', 'version']
    """
    return frozenset(_PARAMETER.findall(path))


def filled(path: str, values: Mapping[str, str]) -> str:
    """Return the path with these values, percent-encoded. Lone surrogates are encoded too; a service rejects them.

    >>> filled("/v1/commands/{name:path}", {"name": "a/b"})
    '/v1/commands/a%2Fb'
    """
    return _PARAMETER.sub(lambda match: quote(values[match[1]], safe="", errors="surrogatepass"), path)
