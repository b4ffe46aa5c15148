"""Writes the file `.env` with the first settings: which index, what to follow, a contact. A login gets its own file.

How it is read is in `setting_variables.py`, and the questions for its content are in `cli/init.py`.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pypi_assets.errors import SettingsError
from pypi_assets.index.addresses import is_loopback
from pypi_assets.index.kind_names import AUTO
from pypi_assets.index.urls import redact
from pypi_assets.setting_variables import ENV_PREFIX
from pypi_assets.settings import load_settings

LOGIN_FILE = ".env.index-url"
"""Next to `.env`; it has the URL of an index with its login, and PYPI_ASSETS_INDEX_URL_FILE names it."""
_NAMES = ("lister", "index_url", "projects", "contact")
EXAMPLE_PROJECTS = "requests flask attrs"
ALL_PROJECTS = "all"
_UNWRITABLE = "${"  # it would stand for another variable

_TEXT = """\
# Settings of pypi-assets. A command reads this file in the folder that it is started in. A variable of the environment
# wins over a line here. `pypi-assets admin settings` lists
# all settings.

# The index to follow: the address of its list of projects. Empty: PyPI.
{index_line}

# How it is followed: auto (the index has serials), or pages (it has none, so its pages are observed). Empty: auto.
PYPI_ASSETS_LISTER={lister}

# What to follow: names of projects, or the path of a file with one name per line. Empty: all projects. To follow more
# later, add names and run `pypi-assets crawl full` again.
PYPI_ASSETS_PROJECTS={projects}

# A mail address or a URL of yours. The index sees it in each request. Only an index on this machine needs none.
PYPI_ASSETS_CONTACT={contact}

# Where the catalog and the storage are by default.
#PYPI_ASSETS_HOME=.pypi-assets

# Another place for one of them: a PostgreSQL server, an object store.
#PYPI_ASSETS_DATABASE_URL=postgresql://USER:PASSWORD@HOST/DATABASE
#PYPI_ASSETS_STORAGE_URL=s3://BUCKET/PREFIX

# Which hosts files may come from, next to the index's own: auto (the one that the first pages name), or a JSON list.
#PYPI_ASSETS_ALLOWED_FILE_HOSTS=auto

# Requests per second, of all processes together.
#PYPI_ASSETS_REQUESTS_PER_SECOND=20
"""


@dataclass(frozen=True, slots=True)
class FirstSettings:
    """What a user chose. An empty `index_url` is PyPI, empty `projects` are all, an empty `contact` is none.

    `index_url` can have a login, which `.env` does not get: the whole URL is then in the file of `secret`.
    """

    index_url: str = ""
    projects: str = ""
    contact: str = ""
    lister: str = ""

    @property
    def needs_contact(self) -> bool:
        """Whether the index is on another machine."""
        return not (self.index_url and is_loopback(urlsplit(self.index_url).hostname))

    def check(self) -> None:
        """Raises SettingsError for a value that its setting does not accept, or where a contact is missing."""
        for name in _NAMES:
            check_setting(name, getattr(self, name), lister=self.lister)
        if self.needs_contact and not self.contact:
            raise SettingsError(
                f"{ENV_PREFIX}CONTACT: an index on another machine needs a contact, a mail address or a URL of yours,"
                " which it sees in each request: give it by --contact"
            )

    def text(self) -> str:
        """The content of `.env`."""
        values = {name: _quoted(getattr(self, name)) for name in ("projects", "contact", "lister")}
        line = f"{ENV_PREFIX}INDEX_URL={_quoted(self.index_url)}"
        if self.secret is not None:
            shown = redact(self.index_url)
            line = (
                f"# Its URL has a login, and is in a file of its own: {shown}\n{ENV_PREFIX}INDEX_URL_FILE={LOGIN_FILE}"
            )
        return _TEXT.format(index_line=line, **values)

    @property
    def secret(self) -> str | None:
        """The content of LOGIN_FILE; None if there is no login to be kept out of `.env`."""
        return None if redact(self.index_url) == self.index_url else self.index_url


def check_setting(name: str, text: str, *, lister: str = "") -> None:
    """Raises SettingsError where the setting does not accept `text`, or a file cannot hold it; empty is not set."""
    variable = f"{ENV_PREFIX}{name.upper()}"
    if _UNWRITABLE in text or not text.isprintable() or ("'" in text and '"' in text):
        raise SettingsError(f"{variable}: a file cannot hold this text; set the variable in the environment")
    if not text:
        return
    try:
        load_settings(**({"lister": lister or AUTO} | {name: text}))
    except SettingsError as error:
        about_this = [line for line in str(error).splitlines() if line.startswith(f"{variable}:")]
        if about_this:
            raise SettingsError("\n".join(about_this)) from error


def write_first_settings(path: Path, chosen: FirstSettings, *, replaces: bool) -> None:
    """Write `path`, and a login into LOGIN_FILE next to it, both for their owner alone.

    Raises FileExistsError if one of them is there, unless it `replaces` that.
    """
    secret = path.with_name(LOGIN_FILE)
    if replaces:
        secret.unlink(missing_ok=True)
    if chosen.secret is not None:
        write_env_file(secret, f"{chosen.secret}\n", replaces=replaces)
    write_env_file(path, chosen.text(), replaces=replaces)


def write_env_file(path: Path, text: str, *, replaces: bool) -> None:
    """Writes `path` for its owner alone.

    Raises FileExistsError where it is there, unless it `replaces` that.
    """
    if replaces:
        path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def _quoted(text: str) -> str:
    """`text` as a shell and the reader of the file understand it."""
    if not text:
        return ""
    quote = '"' if "'" in text else "'"
    return f"{quote}{text}{quote}"
