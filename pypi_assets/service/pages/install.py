"""The commands that install from this service, as pages show them: pip and uv with the address of its Simple API.

The setting names the address. Without it, pages have the address at which the service listens, and their script
replaces it by the one that the browser has. It is never taken from the header Host: a request could name any host in
it, and a cache would keep the page for others.
"""

import re
import shlex
from dataclasses import dataclass
from urllib.parse import urlsplit

from packaging.version import InvalidVersion, Version

from pypi_assets.index.addresses import is_loopback
from pypi_assets.service.service import Service

_PLAIN_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


@dataclass(frozen=True)
class IndexAddress:
    """The address of an index for installers: `base`, without the slash at its end, and `path` below it.

    `is_certain`: the setting names it. `trusted_host` is the value of pip's option of this name, without which pip
    takes nothing from another machine that has no TLS; empty if pip needs no such option.
    """

    base: str
    path: str
    is_certain: bool
    trusted_host: str


def index_address(service: Service, serial: int | None) -> IndexAddress:
    """Return the address of the Simple API at `serial`; None: of the latest state."""
    public_url = service.settings.service_public_url
    base = (public_url or service.address).rstrip("/")
    parts = urlsplit(base)
    is_trusted = parts.scheme == "https" or is_loopback(parts.hostname)
    path = "/simple/" if serial is None else f"/at/{serial}/simple/"
    return IndexAddress(base, path, public_url is not None, "" if is_trusted else parts.netloc)


def shell_requirement(project: str, version: str | None = None) -> str | None:
    """Return a requirement as a shell takes it; None if no installer can be asked for it, whatever its text holds.

    >>> shell_requirement("six", "1!1.0"), shell_requirement("six", "$(reboot)")
    ("'six==1!1.0'", None)
    """
    if not _PLAIN_NAME.fullmatch(project):
        return None
    if version is None:
        return project
    try:
        return shlex.quote(f"{project}=={Version(version)}")
    except InvalidVersion:
        return None
