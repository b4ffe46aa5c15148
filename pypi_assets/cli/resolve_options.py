"""The options of commands that resolve requirements, and the question that they make."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypi_assets.terminal import print_message

if TYPE_CHECKING:
    from pypi_assets.resolve.questions import Control, Question, Wanted
    from pypi_assets.resolve.targets import Target

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_AGE = re.compile(r"([0-9]{1,4})([hdw])", re.ASCII)
_HOURS = {"h": 1, "d": 24, "w": 7 * 24}


class _Age(click.ParamType[Any]):
    """A time span in hours, days or weeks."""

    name = "age"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        match = _AGE.fullmatch(str(value))
        if match is None:
            self.fail(f"{str(value)!r:.100} is no time span: write 7d, 36h or 2w", param, ctx)
        return timedelta(hours=int(match[1]) * _HOURS[match[2]])


_FILE_OPTIONS = (
    click.option(
        "-r",
        "--requirement",
        "files",
        multiple=True,
        type=_FILE,
        help="What this requirements.txt names; can be repeated.",
    ),
    click.option(
        "-c",
        "--constraint",
        "constraint_files",
        multiple=True,
        type=_FILE,
        help="Allow no versions but those of this file; can be repeated.",
    ),
    click.option(
        "--cooldown",
        type=_Age(),
        metavar="AGE",
        help="Leave out files that were uploaded within this time, 7d for example.",
    ),
)
SOLVER_OPTIONS = (
    click.option(
        "--python",
        "pythons",
        multiple=True,
        help="For this version of CPython, 3.12 for example; default: the running one.",
    ),
    click.option(
        "--platform",
        "platforms",
        multiple=True,
        help="For linux-x86_64, macos-arm64, windows-x86_64 and others, or a platform as wheels name it, win_arm64 for"
        " example; default: the running one.",
    ),
    click.option("--pre", "prereleases", is_flag=True, help="Pre-releases count as other releases do."),
    click.option("--only-binary", is_flag=True, help="Take no sdists."),
    click.option(
        "--unknown",
        type=click.Choice(["fail", "assume-none"]),
        default="fail",
        show_default=True,
        help="Where it is not known what a file requires: fail, or assume that it is nothing.",
    ),
    click.option(
        "--semantics",
        type=click.Choice(["pip", "uv"]),
        default="pip",
        show_default=True,
        help="Whose rules hold where installers differ.",
    ),
)
SOLVER_NAMES = ("pythons", "platforms", "prereleases", "only_binary", "unknown", "semantics")


@dataclass(frozen=True, slots=True)
class Given:
    """What the options mean. The requirements are read, and the names of environments not yet."""

    requirements: "tuple[Wanted, ...]"
    constraints: "tuple[Wanted, ...]"
    pythons: tuple[str, ...]
    platforms: tuple[str, ...]
    prereleases: "Control"
    formats: "Control"
    only_binary: bool
    unknown: str
    semantics: str
    cooldown: timedelta | None = None
    ignored_options: tuple[str, ...] = ()

    def target(self) -> "Target":
        """The one environment. Raises UsageError where several are named, and BadParameter."""
        from pypi_assets.locks.environments import EnvironmentNameError
        from pypi_assets.resolve.targets import target

        if len(self.pythons) > 1 or len(self.platforms) > 1:
            raise click.UsageError("several of --python or --platform go with --universal alone")
        try:
            return target(*(self.pythons or [None]), *(self.platforms or [None]))
        except EnvironmentNameError as error:
            raise click.BadParameter(str(error)) from error

    def universal_targets(self) -> "tuple[Target, ...]":
        """Several environments. Raises BadParameter."""
        from pypi_assets.locks.environments import EnvironmentNameError
        from pypi_assets.resolve.questions import ResolveError
        from pypi_assets.resolve.targets import universal_targets

        try:
            return universal_targets(self.pythons, self.platforms)
        except (EnvironmentNameError, ResolveError) as error:
            raise click.BadParameter(str(error)) from error

    def question(self, target: "Target", moment: datetime | None = None) -> "Question":
        """The question for an environment. A cooldown counts back from `moment`."""
        from pypi_assets.resolve.questions import Question, Semantics, Unknown

        return Question(
            requirements=self.requirements,
            environment=target.environment,
            constraints=self.constraints,
            semantics=Semantics(self.semantics),
            prereleases=self.prereleases,
            only_binary=self.only_binary,
            uploaded_before=None if self.cooldown is None or moment is None else moment - self.cooldown,
            unknown=Unknown(self.unknown),
            formats=self.formats,
        )


def question_options(run: Callable[..., None]) -> Callable[..., Any]:
    """A decorator for a command that resolves: REQUIREMENT... and the options, which it takes as `given`."""

    @wraps(run)
    def with_question(
        *, requirements: Sequence[str], files: Sequence[Path], constraint_files: Sequence[Path], **arguments: Any
    ) -> None:
        from pypi_assets.resolve.requirement_files import read_requirements

        if not requirements and not files:
            raise click.UsageError("nothing is required: give REQUIREMENT, or -r FILE")
        given = tuple(map(_parsed, requirements))
        options = {name: arguments.pop(name) for name in (*SOLVER_NAMES, "cooldown")}
        read = read_requirements(files, constraint_files, prereleases=options.pop("prereleases"))
        found = Given(
            (*given, *read.requirements),
            tuple(read.constraints),
            prereleases=read.prereleases,
            formats=read.formats,
            ignored_options=tuple(read.ignored),
            **options,
        )
        for sentence in found.ignored_options:
            print_message(sentence)
        run(given=found, **arguments)

    decorated: Callable[..., Any] = with_question
    for option in reversed((*_FILE_OPTIONS, *SOLVER_OPTIONS)):
        decorated = option(decorated)
    return click.argument("requirements", metavar="REQUIREMENT...", nargs=-1)(decorated)


def _parsed(text: str) -> "Wanted":
    from pypi_assets.resolve.questions import ResolveError, parse_wanted

    try:
        return parse_wanted(text)
    except ResolveError as error:
        raise click.BadParameter(str(error)) from error
