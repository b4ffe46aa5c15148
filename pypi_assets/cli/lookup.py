"""Commands that look up: in the newest LevelDB versions, or at an earlier serial in the catalog.

The versions' files are not compared with their hashes first: reading them through takes longer than an answer.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

import click

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.publications.dump_rows import project_rows_at, providing_releases
from pypi_assets.catalog.reports.answerable_serials import answerable_serial
from pypi_assets.cli.opening import opened_catalog
from pypi_assets.cli.options import JSON, command
from pypi_assets.dumps.dump_format import as_dumped
from pypi_assets.lookup.answers import Answer, Distribution, ModuleResult, Stream, module_answer, project_answer
from pypi_assets.lookup.latest import open_latest
from pypi_assets.lookup.readers import Reader
from pypi_assets.settings import load_settings
from pypi_assets.terminal import print_json_line, print_message, print_rows

_STANDARD_INPUT = "-"
_LOOK_EVERY_S = 60.0
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:==\s*([^\s,;=<>]+)\s*)?")
_PREFIX = click.option("--prefix", is_flag=True, help="All whose name begins with NAME.")
_LIMIT = click.option("--limit", type=click.IntRange(1), help="Print no more results than this.")
_AT_SERIAL = click.option(
    "--at-serial", type=click.IntRange(0), help="As of this serial; default: the newest that is published."
)

_Ask = Callable[[str], Answer[Any]]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is wanted of a lookup: what has this name, or begins with it."""

    name: str
    prefix: bool
    limit: int | None
    as_json: bool

    @property
    def look_every_s(self) -> float | None:
        """How often to look for a newer version: whoever sends names may go on for days."""
        return _LOOK_EVERY_S if self.name == _STANDARD_INPUT else None

    def print_rows(self, found: Answer[Any] | Stream[Any], columns: Sequence[str], nothing: str) -> None:
        """Prints what was found, or says that `nothing` is."""
        if not print_rows(columns, islice(found.results, self.limit), self.as_json):
            print_message(f"{nothing} as of serial {found.serial}")
        elif found.version is None:
            print_message(f"as of serial {found.serial}, from the catalog")

    def print_answers(self, ask: _Ask) -> None:
        """Answers each name of standard input in a line; one that cannot be asked about has an `error` instead."""
        for line in sys.stdin.buffer:
            if name := line.decode(errors="replace").strip():
                try:
                    found = ask(name)
                except click.BadParameter as error:
                    print_json_line({"name": name, "error": error.message})
                    continue
                results = list(islice(found.results, self.limit))
                print_json_line({"name": name, "version": found.version, "serial": found.serial, "results": results})


@click.group("lookup")
def lookup_group() -> None:
    """Ask the newest LevelDB versions; of an earlier serial, the catalog.

    For the names of standard input, one a line, NAME is -; each answer is a line of JSON.
    """


@command("module", "yaml", group=lookup_group)
@click.argument("name")
@_PREFIX
@_LIMIT
@_AT_SERIAL
@JSON
def module_command(name: str, prefix: bool, limit: int | None, at_serial: int | None, as_json: bool) -> None:
    """Which projects provide the module NAME, and in which versions."""
    wanted = _wanted(name, prefix, limit, as_json, at_serial)
    columns, nothing = ("project", "versions"), f"no project provides the module {name}"
    if at_serial is not None:
        with _at_serial(at_serial) as (catalog, serial):

            def ask(name: str) -> Answer[ModuleResult]:
                return module_answer(serial, name, providing_releases(catalog, serial, name))

            _answer(wanted, ask, columns, nothing)
        return
    with open_latest("modules", check_hashes=False, refresh_every_s=wanted.look_every_s) as reader:
        _tell_skipped(reader)
        if prefix:
            wanted.print_rows(reader.modules(name), ("module", *columns), f"no module begins with {name}")
        else:
            _answer(wanted, reader.module, columns, nothing)


@command("project", "requests==2.32.3", group=lookup_group)
@click.argument("requirement", metavar="NAME[==VERSION]")
@_PREFIX
@_LIMIT
@_AT_SERIAL
@JSON
def project_command(requirement: str, prefix: bool, limit: int | None, at_serial: int | None, as_json: bool) -> None:
    """What the distributions of a project, or of one version of it, require."""
    wanted = _wanted(requirement, prefix, limit, as_json, at_serial)
    columns = ("filename", "version", "requires_python", "yanked", "requires_dist")
    nothing = f"no project begins with {requirement}"
    if requirement != _STANDARD_INPUT and not prefix:
        name, version = _read_requirement(requirement)
        nothing = f"no distribution of {name}{f' in version {version}' if version else ''} is known"
    if at_serial is not None:
        with _at_serial(at_serial) as (catalog, serial):

            def ask(requirement: str) -> Answer[Distribution]:
                name, version = _read_requirement(requirement)
                return project_answer(serial, map(as_dumped, project_rows_at(catalog, serial, name)), version)

            _answer(wanted, ask, columns, nothing)
        return
    with open_latest("depgraph", check_hashes=False, refresh_every_s=wanted.look_every_s) as reader:
        _tell_skipped(reader)
        if prefix:
            wanted.print_rows(reader.projects(requirement), columns, nothing)
        else:
            _answer(wanted, lambda requirement: reader.project(*_read_requirement(requirement)), columns, nothing)


@command("dependents", "requests", group=lookup_group)
@click.argument("name")
@_PREFIX
@_LIMIT
@JSON
def dependents_command(name: str, prefix: bool, limit: int | None, as_json: bool) -> None:
    """Which projects require the project NAME, and in which versions: always, only by a marker, only with an extra."""
    wanted = _wanted(name, prefix, limit, as_json)
    columns = ("normalized", "always", "marker", "extra")
    with open_latest("depgraph", check_hashes=False, refresh_every_s=wanted.look_every_s) as reader:
        _tell_skipped(reader)
        if prefix:
            nothing = f"no project requires one that begins with {name}"
            wanted.print_rows(reader.all_dependents(name), ("required", *columns), nothing)
        else:
            _answer(wanted, reader.dependents, columns, f"no project requires {name}")


def _wanted(name: str, prefix: bool, limit: int | None, as_json: bool, at_serial: int | None = None) -> _Wanted:
    if not name.strip():
        raise click.BadParameter("there is nothing whose name is empty", param_hint="NAME")
    if prefix and (name == _STANDARD_INPUT or at_serial is not None):
        raise click.UsageError("--prefix goes neither with --at-serial nor with names from standard input")
    return _Wanted(name, prefix, limit, as_json)


def _answer(wanted: _Wanted, ask: _Ask, columns: Sequence[str], nothing: str) -> None:
    if wanted.name == _STANDARD_INPUT:
        wanted.print_answers(ask)
    else:
        wanted.print_rows(ask(wanted.name), columns, nothing)


@contextmanager
def _at_serial(at_serial: int) -> Iterator[tuple[Catalog, int]]:
    with opened_catalog(load_settings()) as catalog:
        yield catalog, answerable_serial(catalog, at_serial)


def _tell_skipped(reader: Reader) -> None:
    for skipped in reader.skipped:
        print_message(f"not used: {skipped}")


def _read_requirement(requirement: str) -> tuple[str, str | None]:
    match = _REQUIREMENT.fullmatch(requirement)
    if match is None:
        raise click.BadParameter(f"{requirement!r} is neither a project's NAME nor NAME==VERSION")
    return match[1], match[2]
