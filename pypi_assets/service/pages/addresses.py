"""The addresses of pages, also below `/at/SERIAL.EPOCH`. A page ends with a slash, and its data with `.json`: so
`/import/flask.json/` is the page of a module, and `/import/flask.json` the data of another one.
"""

from urllib.parse import quote, urlencode

_LONGEST = 4_000
_PATH_ALONE = frozenset({"", ".", ".."})


def page_address(prefix: str, *parts: str, **query: object) -> str | None:
    """The address of a page; None where a name cannot be part of a path: it is empty, has a slash, or is too long.

    >>> page_address("/at/17.17", "project", "a b", page=2)
    '/at/17.17/project/a%20b/?page=2'
    """
    return _address(prefix, parts, "/", query)


def data_address(prefix: str, *parts: str, **query: object) -> str | None:
    """The address of the data of the same page; that of the first page, which has no parts, is `/index.json`."""
    return _address(prefix, parts or ("index",), ".json", query)


def download_address(prefix: str, sha256: str, filename: str) -> str | None:
    """Where this service leads to the bytes of a file.

    >>> download_address("/at/17.17", "00ff", "six-1.17.0.tar.gz")
    '/at/17.17/files/00ff/six-1.17.0.tar.gz'
    """
    return _address(prefix, ("files", sha256, filename), "", {})


def is_local_page(path: str) -> bool:
    """Whether a path, perhaps with a query, can be one of this service, as it is written in a form.

    >>> is_local_page("/import/yaml/"), is_local_page("//elsewhere.invalid/")
    (True, False)
    """
    is_plain = path.isascii() and path.isprintable() and not {"\\", " ", '"', "<", ">"} & set(path)
    return is_plain and path.startswith("/") and not path.startswith("//") and len(path) <= _LONGEST


def _address(prefix: str, parts: tuple[str, ...], ending: str, query: dict[str, object]) -> str | None:
    if any(part in _PATH_ALONE or "/" in part or "\0" in part for part in parts):
        return None
    path = "".join(f"/{quote(part, safe='')}" for part in parts)
    given = {name: value for name, value in query.items() if value is not None}
    found = f"{prefix}{path}{ending}" + (f"?{urlencode(given)}" if given else "")
    return found if len(found) <= _LONGEST else None
