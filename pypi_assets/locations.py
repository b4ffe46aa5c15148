"""Where local files and the object store are: the two settings that a look-up needs, without all the others.

`settings.py` has these two as well, with the same rules, but its validation library takes longer to import than a
look-up takes. So nothing is imported here that does, and no other setting belongs here.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pypi_assets.errors import SettingsError
from pypi_assets.setting_variables import DEFAULT_HOME as DEFAULT_HOME
from pypi_assets.setting_variables import read_variables

STORAGE_URL_ACCEPTS = "file:///PATH, s3://BUCKET/PREFIX, gs://..., az://... or memory:///; default: in home"


@dataclass(frozen=True, slots=True)
class Locations:
    """`home` is the folder for all local files; an empty `storage_url` means the folder `storage` in it."""

    home: Path = DEFAULT_HOME
    storage_url: str = ""

    @property
    def resolved_home(self) -> Path:
        return self.home.expanduser().resolve()

    @property
    def leveldbs_dir(self) -> Path:
        """The folder in which LevelDBs of a remote store are built and cached."""
        return self.resolved_home / "leveldbs"

    @property
    def resolved_storage_url(self) -> str:
        return self.storage_url or (self.resolved_home / "storage").as_uri()


def load_locations(environment: Mapping[str, str] = os.environ) -> Locations:
    """The locations that the settings name, as in `load_settings().locations`; no other setting is looked at.

    Raises SettingsError, with the text that `load_settings` has for a wrong storage URL.
    """
    variables = read_variables(environment)
    home, url = (variables.texts.get(name, "") for name in ("home", "storage_url"))
    try:
        return Locations(Path(home) if home else DEFAULT_HOME, checked_storage_url(url))
    except ValueError as error:
        place = variables.place("storage_url")
        label = variables.label("storage_url")
        raise SettingsError(f"{label}: {error}{place}; it accepts {STORAGE_URL_ACCEPTS}") from error


def checked_storage_url(value: str) -> str:
    """The URL without a slash at its end. Raises ValueError where it is the URL of no storage."""
    scheme, _, rest = value.partition("://")
    if value and scheme not in {"file", "s3", "gs", "az", "memory"}:
        raise ValueError("not file://, s3://, gs://, az:// or memory://")
    if scheme == "file" and not rest.removeprefix("localhost").startswith("/"):
        raise ValueError("not an absolute path: file:///PATH")
    if scheme in {"s3", "gs", "az"} and not rest.partition("/")[0]:
        raise ValueError("names no bucket")
    return value.rstrip("/") if value.count("/") > 3 else value
