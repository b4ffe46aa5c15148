"""Package URLs of Python packages, such as `pkg:pypi/requests@2.32.3`, and the result of looking one up."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypedDict
from urllib.parse import parse_qsl, unquote

from packaging.utils import canonicalize_name

from pypi_assets.lookup.answers import LookupNameError

_PURL = re.compile(r"pkg:/{0,2}pypi/+([^/?#@]+)(?:@([^?#/]*))?(?:\?([^#]*))?(?:#.*)?", re.IGNORECASE | re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", re.ASCII)


class PackageUrl(NamedTuple):
    """The project (normalized) of a package URL, with the version and the filename if the URL has them."""

    normalized: str
    version: str | None
    filename: str | None


class PurlResult(TypedDict):
    """The result for the package URL `purl`. `error` is the reason if the URL is invalid or has no answer, else None.

    The package `exists` if it has live files: of the version and with the filename, if the URL has them. `yanked` is
    None without such files.
    """

    purl: str
    error: str | None
    project: str | None
    version: str | None
    exists: bool
    yanked: bool | None
    files: list[str]


def parse_purl(text: str) -> PackageUrl:
    """Parse a package URL of the type `pypi`. Raises LookupNameError.

    >>> parse_purl("pkg:pypi/PyYAML@6.0?file_name=PyYAML-6.0.tar.gz")
    PackageUrl(normalized='pyyaml', version='6.0', filename='PyYAML-6.0.tar.gz')
    """
    match = _PURL.fullmatch(text.strip())
    if match is None:
        raise LookupNameError(f"{text!r:.200} is not a package URL of type pypi, such as pkg:pypi/requests@2.32.3")
    name = unquote(match[1])
    if not _NAME.fullmatch(name):
        raise LookupNameError(f"{name!r:.200} is not a valid project name")
    qualifiers = dict(parse_qsl(match[3] or "", keep_blank_values=True))
    version = unquote(match[2]) if match[2] else None
    return PackageUrl(canonicalize_name(name), version, qualifiers.get("file_name"))


def purl_result(purl: str, parsed: PackageUrl, found: Iterable[Mapping[str, Any]]) -> PurlResult:
    """Return the result for a package URL. `found` are the files of its project, or of its version if it has one."""
    files = [file for file in found if parsed.filename is None or file["filename"] == parsed.filename]
    first = files[0] if files else None
    return PurlResult(
        purl=purl,
        error=None,
        project=None if first is None else str(first["project"]),
        version=parsed.version,
        exists=bool(files),
        yanked=all(file["yanked"] for file in files) if files else None,
        files=[str(file["filename"]) for file in files],
    )


def wrong_purl(purl: str, error: Exception) -> PurlResult:
    """Return the result for a text that is not a valid package URL, or that cannot be answered."""
    return PurlResult(purl=purl, error=str(error), project=None, version=None, exists=False, yanked=None, files=[])
