"""What commands about the requirements of newest releases share: what they read, and what they print around it."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Union

import click

from pypi_assets.cli.followed_notes import VersionNotes, among, catalog_notes
from pypi_assets.cli.moments import catalog_at
from pypi_assets.terminal import counted, print_message

if TYPE_CHECKING:
    from packaging.version import Version

    from pypi_assets.catalog.reports.moments import Moment
    from pypi_assets.lookup.answers import Answer, Stream
    from pypi_assets.lookup.newest_requirements import NewestRequirements
    from pypi_assets.resolve.releases import ReleaseIndex

AnyAnswer = Union["Answer[Any]", "Stream[Any]"]
Query = Callable[["NewestRequirements"], Iterator[Any]]
TRANSITIVE = click.option("--transitive", is_flag=True, help="Also what requires these projects, and so on.")
DEPTH = click.option("--depth", type=click.IntRange(1), help="With --transitive: no more steps than this.")
COLUMNS = ("depth", "required", "normalized", "version", "condition", "requirements")


def check_depth(depth: int | None, *, transitive: bool) -> None:
    """Raises UsageError for a depth without --transitive."""
    if depth is not None and not transitive:
        raise click.UsageError("--depth goes with --transitive")


def named_version(text: str) -> "tuple[str, Version | None]":
    """The project and the version of `NAME` or `NAME==VERSION`. Raises BadParameter for anything else."""
    from pypi_assets.lookup.depgraph_reader import parse_requirement
    from pypi_assets.lookup.errors import LookupNameError
    from pypi_assets.lookup.requirement_filters import parse_version

    try:
        name, version = parse_requirement(text)
        return name, None if version is None else parse_version(version)
    except LookupNameError as error:
        raise click.BadParameter(str(error)) from error


class NewestAnswers:
    """Answers queries from the newest version of `depgraph`, or from the catalog `at` a moment. A context manager."""

    def __init__(self, at: "Moment | None") -> None:
        self._at = at
        self._stack = ExitStack()

    def __enter__(self) -> "NewestAnswers":
        from pypi_assets.lookup.depgraph_reader import DepgraphReader
        from pypi_assets.lookup.latest import open_latest

        if self._at is not None:
            self._catalog, self._serial = self._stack.enter_context(catalog_at(self._at))
        else:
            self._reader = self._stack.enter_context(open_latest(DepgraphReader, check_hashes=False))
            self._notes = VersionNotes(self._stack)
            for skipped in self._reader.skipped:
                print_message(f"not used: {skipped}")
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def answer(self, kind: type[Any], query: Query, project: str | None = None) -> AnyAnswer:
        """What the query finds, which is about this project: of the catalog at once, with its epoch. Raises
        NotAnsweredError where answers about the project begin at a later serial.
        """
        if self._at is None:
            return self._reader.over_newest(kind, query)
        from pypi_assets.catalog.observed.followed import count_answered
        from pypi_assets.catalog.reports.answerable_serials import pinned_answer
        from pypi_assets.catalog.reports.project_following import require_answered
        from pypi_assets.lookup.answers import Answer
        from pypi_assets.lookup.newest_requirements import PastRequirements

        with self._catalog.read() as connection:
            if project is not None:
                require_answered(connection, project, self._serial)
            followed = count_answered(connection, self._serial)
        graph = PastRequirements(self._catalog, self._serial)
        found, epoch = pinned_answer(self._catalog, self._serial, lambda: tuple(query(graph)))
        return replace(Answer(None, self._serial, found, kind), epoch=epoch, followed_projects=followed)

    def release_index(self) -> "ReleaseIndex":
        """The releases that the answers are of, from which a solver chooses."""
        from pypi_assets.resolve.releases import PastIndex, PublishedIndex

        return PublishedIndex(self._reader) if self._at is None else PastIndex(self._catalog, self._serial)

    def require_release(self, name: str, version: "Version") -> None:
        """Raises ClickException where the project has no live release of this version."""
        from pypi_assets.lookup.newest_requirements import is_release

        if not is_release(version, self._versions(name)):
            raise click.ClickException(
                f"{name} has no live release {version}, so nothing can be solved with it: leave out --solve for what"
                " requirements make of it"
            )

    def print_notes(self, name: str, version: "Version | None", answer: AnyAnswer) -> None:
        """Prints why there may be nothing about a project, or that none of its live releases is this version."""
        from pypi_assets.lookup.newest_requirements import is_release

        versions = self._versions(name)
        if not versions:
            print_message(f"no distribution of {name} is known")
            for note in (*self._followed_notes(name, answer), *self._hints(name)):
                print_message(note)
        elif version is not None and not is_release(version, versions):
            print_message(f"{name} has no live release {version}: the answer is what requirements make of it")

    def _versions(self, name: str) -> list[str]:
        from packaging.utils import canonicalize_name

        from pypi_assets.lookup.newest_requirements import PastRequirements, PublishedRequirements

        project = canonicalize_name(name)
        if self._at is not None:
            found = PastRequirements(self._catalog, self._serial).versions(project)
        else:
            _, found = self._reader.query(lambda db: PublishedRequirements(db).versions(project))
        return [version for version, _ in found]

    def _followed_notes(self, name: str, answer: AnyAnswer) -> Iterable[str]:
        if self._at is None:
            return self._notes(name, answer.serial, answer.followed_projects)
        with self._catalog.read() as connection:
            return list(catalog_notes(connection, name, answer.serial, answer.followed_projects))

    def _hints(self, name: str) -> Iterable[str]:
        from pypi_assets.lookup.catalog_hints import past_project_hints
        from pypi_assets.lookup.hints import project_hints
        from pypi_assets.lookup.latest import open_if_local

        if self._at is None:
            return project_hints(self._reader, name, open_if_local)
        return past_project_hints(self._catalog, name)


def with_context(answer: AnyAnswer) -> Iterator[Any]:
    """The results, each with what JSON has of the answer in addition, as those of a lookup."""
    context = {"epoch": getattr(answer, "epoch", None), "followed_projects": answer.followed_projects}
    given = {name: value for name, value in context.items() if value is not None}
    return ({**result, **given} for result in answer.results)


def counting(results: Iterable[Any], depths: Counter[int]) -> Iterator[Any]:
    """The results, whose depths are counted as they pass."""
    for result in results:
        depths[result["depth"]] += 1
        yield result


def print_summary(answer: AnyAnswer, depths: Counter[int], nothing_found: str) -> None:
    """Prints how many projects were found, how far away, and as of when."""
    source = ", from the catalog" if answer.version is None else ""
    as_of = f"as of serial {answer.serial}{source}{among(answer.followed_projects)}"
    if not depths:
        print_message(f"{nothing_found} {as_of}")
        return
    steps = ", ".join(f"{count} at depth {depth}" for depth, count in depths.items())
    print_message(f"{counted(depths.total(), 'project')}: {steps}; {as_of}")
