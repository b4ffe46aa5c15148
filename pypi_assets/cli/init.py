"""The command that writes the first settings into a file `.env`."""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pypi_assets.cli.options import command
from pypi_assets.terminal import counted, plain, print_message

if TYPE_CHECKING:
    from pypi_assets.env_file import FirstSettings

_PYPI = "PyPI"
_FIRST = ("follow --once",)
_FIRST_OF_MANY = ("crawl full", "dump full", "leveldb update")
_LAST = "lookup module NAME"
_COST = """\

All of PyPI takes 14 to 20 days at 20 requests a second, the default, and 250 GB of disk: deploy/README.md has more."""


@command("init", "https://index.example.org/ --contact you@example.org")
@click.argument("url", required=False)
@click.option("--index", help="The same as URL, with questions for what is not given; or PyPI.")
@click.option("--projects", help="Names of projects, or the path of a file with names; or all.")
@click.option("--contact", help="A mail address or a URL of yours, which the index sees in each request.")
@click.option(
    "--lister", help="How the index is followed, such as pages: see PYPI_ASSETS_LISTER. Then no request is sent."
)
@click.option("--yes", is_flag=True, help="Put no question: take the default where an option is not given.")
@click.option("--force", is_flag=True, help="Replace the file where it exists.")
def init_command(
    url: str | None,
    index: str | None,
    projects: str | None,
    contact: str | None,
    lister: str | None,
    yes: bool,
    force: bool,
) -> None:
    """Write a commented file of settings, .env, into this folder.

    URL is the address of an index, with or without its last part, such as /simple/. The index is asked what it is: with
    serials and a changelog, as PyPI, or without, as devpi, pypiserver or a folder. A login in the URL goes into a file
    of its own.

    Without URL, it has three questions: which index to follow, which of its projects, and a contact. Options answer
    them in advance.
    """
    from pypi_assets.env_file import LOGIN_FILE, FirstSettings, write_first_settings
    from pypi_assets.index.kind_names import PAGES
    from pypi_assets.setting_variables import ENV_FILE, ENV_PREFIX

    path = Path(ENV_FILE)
    if path.exists() and not force:
        raise click.ClickException(f"{path} exists: --force replaces it, and an editor changes it")
    if url is not None and index is not None:
        raise click.UsageError("the index is given twice: as URL and by --index")
    given = {"--index": index, "--projects": projects, "--contact": contact}
    missing = [option for option, value in given.items() if value is None]
    if url is None and missing and not yes and not sys.stdin.isatty():
        raise click.UsageError(f"there is no terminal for questions: give the URL, or {', '.join(missing)}, or --yes")
    answer = _given_or_default if yes or url is not None else _given_or_prompted
    chosen = FirstSettings(lister=_of_option("--lister", lister or "", partial(_checked, "lister")))
    for choose, value in ((_choose_index, url or index), (_choose_projects, projects), (_choose_contact, contact)):
        chosen = choose(chosen, value, answer)
    chosen.check()
    found = ""
    if chosen.index_url and lister is None:
        chosen, found = _ask_index(chosen)
    write_first_settings(path, chosen, replaces=force)
    click.echo(f"{path} has the settings now: {_describe(chosen)}.")
    if found:
        click.echo(found)
    if chosen.secret is not None:
        click.echo(f"The URL with its login is in {LOGIN_FILE}, which only you can read.")
    for name in ("INDEX_URL", "LISTER", "PROJECTS", "CONTACT"):
        if os.environ.get(f"{ENV_PREFIX}{name}"):
            print_message(f"{ENV_PREFIX}{name} is set in the environment too, which wins over the file")
    is_small = bool(chosen.projects) or not chosen.needs_contact or chosen.lister == PAGES
    steps = (*(_FIRST if is_small else _FIRST_OF_MANY), _LAST)
    click.echo("Next, in this folder:\n\n" + "\n".join(f"  pypi-assets {step}" for step in steps))
    click.echo("\n`pypi-assets status` shows at any time what to do. `pypi-assets up` does all of it, and follows on.")
    if not chosen.index_url and not chosen.projects:
        click.echo(_COST)


def _ask_index(chosen: "FirstSettings") -> tuple["FirstSettings", str]:
    """Return the settings for what the index turns out to be, and a sentence about that."""
    from pypi_assets.assembly import detect_index
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
        text = f"It has serials{count}, but no changelog, so its list of projects is followed, which has no events"
        return chosen, f"{text}: {plain(found.changelog)}."
    return chosen, f"{product}It has no serials{count}: its pages are observed (docs/observed-indexes.md)."


_Answer = Callable[[str, str | None, str, str, Callable[[str], str]], str]
"""What an option gives, or the answer to a question: (option, what it gives, question, default, what checks and
translates it)."""


def _given_or_default(
    option: str, given: str | None, _question: str, default: str, translate: Callable[[str], str]
) -> str:
    return translate(default) if given is None else _of_option(option, given, translate)


def _of_option(option: str, given: str, translate: Callable[[str], str]) -> str:
    """`given`, translated. An error names the option in place of the variable, which the user has not seen yet."""
    from pypi_assets.errors import SettingsError
    from pypi_assets.setting_variables import ENV_PREFIX

    try:
        return translate(given)
    except SettingsError as error:
        name = option.removeprefix("--")
        variable = f"{ENV_PREFIX}{'INDEX_URL' if option == '--index' else name.upper()}"
        accepts = f", or {_PYPI}" if option == "--index" else ""
        raise SettingsError(str(error).replace(f"{variable}:", f"{option}:") + accepts) from error


def _given_or_prompted(
    option: str, given: str | None, question: str, default: str, translate: Callable[[str], str]
) -> str:
    from pypi_assets.errors import SettingsError

    def translated(text: str) -> str:
        try:
            return translate(text)
        except SettingsError as error:
            raise click.UsageError(plain(error)) from error  # the question is put again

    if given is not None:
        return _of_option(option, given, translate)
    shown: str = click.prompt(question, default=default, show_default=bool(default), value_proc=translated)
    return shown


def _choose_index(chosen: "FirstSettings", given: str | None, answer: _Answer) -> "FirstSettings":
    def translate(text: str) -> str:
        url = "" if text.strip().lower() == _PYPI.lower() else text.strip()
        return _checked("index_url", url, lister=chosen.lister)

    question = "Which index? Its URL, as for pip's --index-url"
    return replace(chosen, index_url=answer("--index", given, question, _PYPI, translate))


def _choose_projects(chosen: "FirstSettings", given: str | None, answer: _Answer) -> "FirstSettings":
    from pypi_assets.env_file import ALL_PROJECTS, EXAMPLE_PROJECTS

    def translate(text: str) -> str:
        return _checked("projects", "" if text.strip().lower() == ALL_PROJECTS else text.strip())

    question = "Which projects? Names, a file of names, or all"
    default = ALL_PROJECTS
    if not chosen.index_url:
        question, default = f"{question} (all of {_PYPI} takes days)", EXAMPLE_PROJECTS
    return replace(chosen, projects=answer("--projects", given, question, default, translate))


def _choose_contact(chosen: "FirstSettings", given: str | None, answer: _Answer) -> "FirstSettings":
    def translate(text: str) -> str:
        replace(chosen, contact=_checked("contact", text.strip())).check()
        return text.strip()

    if given is None and not chosen.needs_contact:
        return chosen
    question = "Your mail address, or a page of yours? The index sees it in each request"
    return replace(chosen, contact=answer("--contact", given, question, "", translate))


def _checked(name: str, text: str, *, lister: str = "") -> str:
    from pypi_assets.env_file import check_setting

    check_setting(name, text, lister=lister)
    return text


def _describe(chosen: "FirstSettings") -> str:
    from pypi_assets.index.urls import redact

    index = plain(redact(chosen.index_url)) if chosen.index_url else _PYPI
    return f"{index}, {plain(chosen.projects) if chosen.projects else 'all projects'}"
