"""The command `init`, which writes the first settings into `.env`: the index, the projects to follow, and a contact.

`setting_sources.py` reads the file.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import click

from pypi_assets.cli.options import command
from pypi_assets.errors import SettingsError
from pypi_assets.setting_sources import ENV_FILE, ENV_PREFIX
from pypi_assets.terminal import counted, plain, print_message

_PYPI = "PyPI"
_FIRST = ("follow --once",)
_FIRST_OF_MANY = ("crawl full", "dump full", "leveldb update")
_LAST = "lookup module NAME"
_COST = """\

All of PyPI takes 14 to 20 days at 20 requests a second, the default, and 250 GB of disk: docs/deploy.md has more."""


LOGIN_FILE = ".env.index-url"
"""A file next to `.env` for an index URL that has a login. The setting PYPI_ASSETS_INDEX_URL_FILE names it."""
_NAMES = ("lister", "index_url", "projects", "contact")
EXAMPLE_PROJECTS = "requests flask attrs"
ALL_PROJECTS = "all"
_UNWRITABLE = "${"  # a reader of the file would replace it by the value of a variable

_TEXT = """\
# Settings of pypi-assets. Commands read this file from the folder that they are started in. Environment variables
# take precedence over the lines here. `pypi-assets admin settings` lists all settings.

# The index to follow: the address of its list of projects. Empty: PyPI.
{index_line}

# How to follow it: auto (the index has serials), or pages (without serials: its pages are polled). Empty: auto.
PYPI_ASSETS_LISTER={lister}

# What to follow: names of projects, or the path of a file with one name per line. Empty: all projects. To add projects
# later, add their names and run `pypi-assets crawl full` again.
PYPI_ASSETS_PROJECTS={projects}

# Your mail address or URL. The index sees it in each request. Only an index on this machine works without a contact.
PYPI_ASSETS_CONTACT={contact}

# The folder of the catalog and the storage, by default.
#PYPI_ASSETS_HOME=.pypi-assets

# Other places for the catalog or the storage: a PostgreSQL server, an object store.
#PYPI_ASSETS_DATABASE_URL=postgresql://USER:PASSWORD@HOST/DATABASE
#PYPI_ASSETS_STORAGE_URL=s3://BUCKET/PREFIX

# Hosts of files besides the index's own host: auto (the host that the first pages name), or a JSON list.
#PYPI_ASSETS_ALLOWED_FILE_HOSTS=auto

# Requests per second, for all processes together.
#PYPI_ASSETS_REQUESTS_PER_SECOND=20
"""


@dataclass(frozen=True, slots=True)
class FirstSettings:
    """The settings that a user chose.

    An empty `index_url` means PyPI, empty `projects` mean all projects, and an empty `contact` means no contact. If
    `index_url` has a login, the URL is written to LOGIN_FILE (see `secret`) and not to `.env`.
    """

    index_url: str = ""
    projects: str = ""
    contact: str = ""
    lister: str = ""

    @property
    def needs_contact(self) -> bool:
        """Return whether the index is on another machine."""
        from pypi_assets.index.addresses import is_loopback

        return not (self.index_url and is_loopback(urlsplit(self.index_url).hostname))

    def check(self) -> None:
        """Raise SettingsError if a setting does not accept its value, or if the contact is missing."""
        for name in _NAMES:
            check_setting(name, getattr(self, name), lister=self.lister)
        if self.needs_contact and not self.contact:
            raise SettingsError(
                f"{ENV_PREFIX}CONTACT: an index on another machine needs a contact, your mail address or URL, which it"
                " sees in each request: pass --contact"
            )

    def text(self) -> str:
        """Return the content of `.env`."""
        from pypi_assets.index.urls import redact

        values = {name: _quoted(getattr(self, name)) for name in ("projects", "contact", "lister")}
        line = f"{ENV_PREFIX}INDEX_URL={_quoted(self.index_url)}"
        if self.secret is not None:
            shown = redact(self.index_url)
            line = (
                f"# Its URL has a login, so it is in a separate file: {shown}\n{ENV_PREFIX}INDEX_URL_FILE={LOGIN_FILE}"
            )
        return _TEXT.format(index_line=line, **values)

    @property
    def secret(self) -> str | None:
        """The content of LOGIN_FILE; None if the URL has no login."""
        from pypi_assets.index.urls import redact

        return None if redact(self.index_url) == self.index_url else self.index_url


def check_setting(name: str, text: str, *, lister: str = "") -> None:
    """Raise SettingsError if the setting does not accept `text`, or if a file cannot hold it. Empty means not set."""
    from pypi_assets.index.kind_names import AUTO
    from pypi_assets.settings import load_settings

    variable = f"{ENV_PREFIX}{name.upper()}"
    if _UNWRITABLE in text or not text.isprintable() or ("'" in text and '"' in text):
        raise SettingsError(f"{variable}: a file cannot hold this text; set the variable in the environment instead")
    if not text:
        return
    try:
        load_settings(**({"lister": lister or AUTO} | {name: text}))
    except SettingsError as error:
        about_this = [line for line in str(error).splitlines() if line.startswith(f"{variable}:")]
        if about_this:
            raise SettingsError("\n".join(about_this)) from error


def write_first_settings(path: Path, chosen: FirstSettings, *, replaces: bool) -> None:
    """Write `path`, and a login into LOGIN_FILE next to it. Only their owner can read them.

    Raises FileExistsError if one of them exists, unless `replaces` is set.
    """
    secret = path.with_name(LOGIN_FILE)
    if replaces:
        secret.unlink(missing_ok=True)
    if chosen.secret is not None:
        write_env_file(secret, f"{chosen.secret}\n", replaces=replaces)
    write_env_file(path, chosen.text(), replaces=replaces)


def write_env_file(path: Path, text: str, *, replaces: bool) -> None:
    """Write a file that only its owner can read. Raises FileExistsError if it exists, unless `replaces` is set."""
    if replaces:
        path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def _quoted(text: str) -> str:
    """Quote text so that a shell and the reader of `.env` understand it."""
    if not text:
        return ""
    quote = '"' if "'" in text else "'"
    return f"{quote}{text}{quote}"


@command("init", "https://index.example.org/ --contact you@example.org")
@click.argument("url", required=False)
@click.option("--index", help="PyPI, or the URL of the index. Asks for other settings that are not given.")
@click.option("--projects", help="Names of projects, the path of a file with names, or all.")
@click.option("--contact", help="Your mail address or URL, which the index sees in each request.")
@click.option(
    "--lister", help="How to follow the index, such as pages: see PYPI_ASSETS_LISTER. Skips the request to the index."
)
@click.option("--yes", is_flag=True, help="Ask no questions: use the default of each option that is not given.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
def init_command(
    url: str | None,
    index: str | None,
    projects: str | None,
    contact: str | None,
    lister: str | None,
    yes: bool,
    force: bool,
) -> None:
    """Write a commented settings file, .env, into this folder.

    URL is the address of an index, with or without its last part, such as /simple/. A request to the index finds out
    whether it has serials and a changelog, as PyPI, or not, as devpi, pypiserver or a folder. A login in the URL goes
    into a separate file.

    Without URL, the command asks three questions: which index to follow, which of its projects, and a contact. Options
    answer them in advance.
    """
    from pypi_assets.index.kind_names import PAGES

    path = Path(ENV_FILE)
    if path.exists() and not force:
        raise click.ClickException(f"{path} exists: pass --force to replace it, or edit it")
    if url is not None and index is not None:
        raise click.UsageError("the index is given twice: pass either URL or --index")
    given = {"--index": index, "--projects": projects, "--contact": contact}
    missing = [option for option, value in given.items() if value is None]
    if url is None and missing and not yes and not sys.stdin.isatty():
        raise click.UsageError(
            f"cannot ask questions without a terminal: pass the URL, or {', '.join(missing)}, or --yes"
        )
    answer = _given_or_default if yes or url is not None else _given_or_prompted
    chosen = FirstSettings(lister=_of_option("--lister", lister or "", partial(_checked, "lister")))
    choose_index = partial(_choose_index, option="--index" if url is None else "URL")
    for choose, value in ((choose_index, url or index), (_choose_projects, projects), (_choose_contact, contact)):
        chosen = choose(chosen, value, answer)
    chosen.check()
    found = ""
    if chosen.index_url and lister is None:
        chosen, found = _ask_index(chosen)
    write_first_settings(path, chosen, replaces=force)
    click.echo(f"Settings were written to {path}: {_describe(chosen)}.")
    if found:
        click.echo(found)
    if chosen.secret is not None:
        click.echo(f"The URL with its login is in {LOGIN_FILE}, which only you can read.")
    for name in ("INDEX_URL", "LISTER", "PROJECTS", "CONTACT"):
        if os.environ.get(f"{ENV_PREFIX}{name}"):
            print_message(f"{ENV_PREFIX}{name} is also set in the environment, which takes precedence over the file")
    is_small = bool(chosen.projects) or not chosen.needs_contact or chosen.lister == PAGES
    steps = (*(_FIRST if is_small else _FIRST_OF_MANY), _LAST)
    click.echo("Next, in this folder:\n\n" + "\n".join(f"  pypi-assets {step}" for step in steps))
    click.echo(
        "\n`pypi-assets status` shows what to do next. `pypi-assets up` runs all of it, and continues to follow."
    )
    if not chosen.index_url and not chosen.projects:
        click.echo(_COST)


def _ask_index(chosen: FirstSettings) -> tuple[FirstSettings, str]:
    """Return the settings for the detected kind of index, and a sentence about it."""
    from pypi_assets.components import detect_index
    from pypi_assets.index.kind_names import AUTO, SIMPLE, XMLRPC
    from pypi_assets.index.urls import with_credentials_of
    from pypi_assets.settings import load_settings

    overrides = {name: getattr(chosen, name) for name in ("index_url", "projects", "contact") if getattr(chosen, name)}
    found = detect_index(load_settings(**overrides, lister=AUTO))
    url = with_credentials_of(chosen.index_url, found.moved_to or found.index_url)
    chosen = replace(chosen, index_url=url, lister="" if found.lister == AUTO else found.lister)
    chosen.check()
    product = f"Its address has the form that {found.product} uses. " if found.product else ""
    count = "" if found.projects is None else f", and lists {counted(found.projects, 'project')}"
    if found.kind == XMLRPC:
        return chosen, f"It has serials and a changelog, and is at serial {found.serial}{count}."
    if found.kind == SIMPLE:
        text = f"It has serials{count}, but no changelog; its list of projects is followed, which has no events"
        return chosen, f"{text}: {plain(found.changelog)}."
    return chosen, f"{product}It has no serials{count}: its pages are polled (docs/indexes.md)."


_Answer = Callable[[str, str | None, str, str, Callable[[str], str]], str]
"""Returns an option's value or the answer to a question.

Its arguments: the option, its value, the question, the default, and a function that checks and converts the text.
"""


def _given_or_default(
    option: str, given: str | None, _question: str, default: str, translate: Callable[[str], str]
) -> str:
    return translate(default) if given is None else _of_option(option, given, translate)


def _of_option(option: str, given: str, translate: Callable[[str], str]) -> str:
    """Convert the value of an option. An error names the option, since the user has not seen the variable yet."""
    from pypi_assets.errors import SettingsError

    try:
        return translate(given)
    except SettingsError as error:
        is_index = option in {"URL", "--index"}
        variable = f"{ENV_PREFIX}{'INDEX_URL' if is_index else option.removeprefix('--').upper()}"
        accepts = f", or {_PYPI}" if is_index else ""
        raise SettingsError(str(error).replace(f"{variable}:", f"{option}:") + accepts) from error


def _given_or_prompted(
    option: str, given: str | None, question: str, default: str, translate: Callable[[str], str]
) -> str:
    from pypi_assets.errors import SettingsError

    def translated(text: str) -> str:
        try:
            return translate(text)
        except SettingsError as error:
            raise click.UsageError(plain(error)) from error  # click asks again

    if given is not None:
        return _of_option(option, given, translate)
    shown: str = click.prompt(question, default=default, show_default=bool(default), value_proc=translated)
    return shown


def _choose_index(chosen: FirstSettings, given: str | None, answer: _Answer, *, option: str) -> FirstSettings:
    def translate(text: str) -> str:
        url = "" if text.strip().lower() == _PYPI.lower() else text.strip()
        return _checked("index_url", url, lister=chosen.lister)

    question = "Which index? Its URL, as for pip's --index-url"
    return replace(chosen, index_url=answer(option, given, question, _PYPI, translate))


def _choose_projects(chosen: FirstSettings, given: str | None, answer: _Answer) -> FirstSettings:

    def translate(text: str) -> str:
        return _checked("projects", "" if text.strip().lower() == ALL_PROJECTS else text.strip())

    question = "Which projects? Names, a file of names, or all"
    default = ALL_PROJECTS
    if not chosen.index_url:
        question, default = f"{question} (all of {_PYPI} takes days)", EXAMPLE_PROJECTS
    return replace(chosen, projects=answer("--projects", given, question, default, translate))


def _choose_contact(chosen: FirstSettings, given: str | None, answer: _Answer) -> FirstSettings:
    def translate(text: str) -> str:
        replace(chosen, contact=_checked("contact", text.strip())).check()
        return text.strip()

    if given is None and not chosen.needs_contact:
        return chosen
    question = "Your mail address, or a page of yours? The index sees it in each request"
    return replace(chosen, contact=answer("--contact", given, question, "", translate))


def _checked(name: str, text: str, *, lister: str = "") -> str:

    check_setting(name, text, lister=lister)
    return text


def _describe(chosen: FirstSettings) -> str:
    from pypi_assets.index.urls import redact

    index = plain(redact(chosen.index_url)) if chosen.index_url else _PYPI
    return f"{index}, {plain(chosen.projects) if chosen.projects else 'all projects'}"
