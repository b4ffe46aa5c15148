"""How a reader module declares its `pypi-assets lookup` sub-commands. `cli/lookup.py` renders them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pypi_assets.lookup.answers import Answer, Stream
from pypi_assets.lookup.hints import OpenOther
from pypi_assets.lookup.reader import Reader

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog

AnyReader = TypeVar("AnyReader", bound=Reader)


class LookupNameError(ValueError):
    """A text that is not a name of what is looked up; the message describes what it must be."""


@dataclass(frozen=True, slots=True)
class PrefixLookup(Generic[AnyReader]):
    """The lookup of all names that begin with a text. `nothing_found` is printed if there are none."""

    columns: tuple[str, ...]
    stream: Callable[[AnyReader, str], Stream[Any]]
    nothing_found: Callable[[str], str]


@dataclass(frozen=True, slots=True)
class TransitiveLookup(Generic[AnyReader]):
    """The lookup of what a name leads to, and what that leads to in turn: `stream(reader, name, depth)`.

    Each result has its `depth`, 1 for what the name itself leads to; the argument None means any.
    """

    columns: tuple[str, ...]
    stream: Callable[[AnyReader, str, int | None], Stream[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestLookup(Generic[AnyReader]):
    """The lookups with `--latest` where the newest version of a project does not follow from its result.

    They take the place of `answer`, `prefix.stream`, `transitive.stream` and `at_serial.answer`.
    """

    stream: Callable[[AnyReader, str], Stream[Any]]
    prefix: Callable[[AnyReader, str], Stream[Any]]
    transitive: Callable[[AnyReader, str, int | None], Stream[Any]]
    at_serial: Callable[["Catalog", int, str], Answer[Any]]


@dataclass(frozen=True, slots=True)
class CatalogLookup:
    """The lookup of one name in the catalog as of a serial: `answer(catalog, serial, name)`.

    `cells` makes the row of a table from a result, where that does not show the fields as they are. `hints` yields
    sentences about a name for which nothing was found.
    """

    columns: tuple[str, ...]
    answer: Callable[["Catalog", int, str], Answer[Any]]
    nothing_found: Callable[[str], str]
    cells: Callable[[Any], Mapping[str, Any]] | None = None
    hints: Callable[["Catalog", str], Iterator[str]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupCommand(Generic[AnyReader]):
    """One sub-command: `pypi-assets lookup NAME ARGUMENT`.

    `columns` are those of its table; JSON has all fields of a result. `answer` looks up one name. `nothing_found`
    returns the message for a name that is not found, and `hints` yields further sentences about it (`hints.py`). All
    raise LookupNameError for what is not a name.

    `beneath` is a column that a terminal shows beneath the rows. Options follow from what is declared: `--prefix` from
    `prefix`, `--transitive` from `transitive`, `--at` from `at_serial`, `--all` from `ever` (what was known at
    any time up to a serial), and `--file` from `name_of_file`, which also means that several names may be given. The
    table then begins with `name_column`, the field of a result that is the name. `project_of` returns the project that
    a name means, where the answer is about this project alone: if it is not followed, there is none. `--latest` follows
    from `latest_help`, and from either `latest`, which keeps the newest versions alone in results, or `newest`.
    """

    name: str
    argument: str
    example: str
    help: str
    columns: tuple[str, ...]
    answer: Callable[[AnyReader, str], Answer[Any]]
    nothing_found: Callable[[str], str]
    hints: Callable[[AnyReader, str, OpenOther], Iterator[str]] | None = None
    prefix: PrefixLookup[AnyReader] | None = None
    latest: Callable[[Iterable[Any]], Iterator[Any]] | None = None
    newest: NewestLookup[AnyReader] | None = None
    latest_help: str = ""
    beneath: str | None = None
    transitive: TransitiveLookup[AnyReader] | None = None
    at_serial: CatalogLookup | None = None
    ever: CatalogLookup | None = None
    name_of_file: Callable[[Path], str] | None = None
    name_column: str | None = None
    project_of: Callable[[str], str] | None = None
