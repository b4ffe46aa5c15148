"""Routes of questions, with values in place of the parameters in their paths."""

import re
from collections.abc import Mapping
from urllib.parse import quote

_PARAMETER = re.compile(r"{(\w+)(?::\w+)?}")
STEPS = (".", "..")
"""Values that no path can have: they are steps to the same or the upper folder."""


def names_in(path: str) -> frozenset[str]:
    """Return the names of the parameters in a path.

    >>> sorted(names_in("/v1/projects/{project}/{version}"))
    ['project', 'version']
    """
    return frozenset(_PARAMETER.findall(path))


def filled(path: str, values: Mapping[str, str]) -> str:
    """Return the percent-encoded path with these values. A lone surrogate is encoded too: a service rejects it.

    >>> filled("/v1/commands/{name:path}", {"name": "a/b"})
    '/v1/commands/a%2Fb'
    """
    return _PARAMETER.sub(lambda match: quote(values[match[1]], safe="", errors="surrogatepass"), path)
