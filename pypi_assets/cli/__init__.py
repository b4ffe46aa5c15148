"""The `pypi-assets` command line, which runs every stage from the index to the lookups.

The command `pypi-assets NAME ...` is defined in the module NAME of this package; only `devindex` is in its own package.
A command builds the components from the settings, calls them and prints the result. It contains no other logic.

Commands must start quickly, so imports are lazy: this module imports a command's module when the command is called, and
functions import what they need themselves. Modules of commands import at the top only what describes the commands.
"""

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import click
from click.shell_completion import CompletionItem

from pypi_assets import terminal
from pypi_assets.errors import ExpectedError, SettingsError
from pypi_assets.sanitize import inert_lines
from pypi_assets.terminal import plain, print_message

INTERRUPTED = 130
OBJECTS_BETWEEN_COLLECTIONS = 10_000
"""Python's default is 700. Batches of records are not garbage, and scanning them that often is slow."""
_INDEX = "--index"
_ALL_INDEXES = "all"
_OF_EACH_INDEX = ("lookup", "owners", "impact", "history", "mcp", "visits", "admin where")
"""The commands that accept `--index all`."""
_OF_ALL_INDEXES = "lookup confusion"
"""The command that always compares all indexes."""
_STOPPED = "Stopped. Finished work is kept; run the same command again to continue."
_QUESTION = "cli.lookup:command_of"
"""The function that generates a command from the declaration of its question."""
_COMMANDS = {
    "Start": {
        "init": ("cli.init:init_command", "Write a commented settings file, .env, into this folder."),
        "up": ("cli.up:up_command", "Run the whole pipeline on this machine, until stopped."),
        "status": ("cli.status:status_command", "Show the state of every stage, and what to do next."),
        "devindex": (
            "devindex.commands:devindex",
            "A small package index over a folder of real files, for development, demos and tests.",
        ),
    },
    "Query": {
        "lookup": (
            "cli.lookup:lookup_group",
            "Query the newest LevelDB versions, or the catalog at an earlier serial.",
        ),
        "owners": ("cli.owners:owners_command", "Rank the projects that provide imports, with the reasons."),
        "impact": ("cli.impact:impact_command", "Show what depends on PROJECT, or on one of its versions."),
        "history": (_QUESTION, "Show what happened to a project, by serial."),
        "serve": ("cli.serve:serve_command", "Answer over HTTP, until stopped."),
        "mcp": ("cli.mcp:mcp_command", "Offer questions to agents as tools (MCP), until stopped."),
    },
    "Resolve": {
        "blame": ("cli.blame:blame_command", "Find the event that changed what an installer would choose."),
        "resolve": ("cli.resolve:resolve_command", "Choose versions as an installer would, now or at an earlier time."),
    },
    "Follow an index": {
        "scope": ("cli.scope:scope_group", "Follow some projects and their requirements."),
        "crawl": ("cli.crawl:crawl_group", "Bring the catalog up to date with the index."),
        "follow": ("cli.follow:follow_command", "Follow the index within seconds, until stopped."),
        "queue": ("cli.queue:queue_command", "Show which projects are visited next, and why."),
        "visit": ("cli.visit:visit_command", "Visit the pages of PROJECTS now, and print what changed."),
        "visits": (
            "cli.visits:visits_command",
            "List or compare the visits of PROJECT's page, or list projects by state.",
        ),
        "failures": ("cli.failures:failures_group", "List, show and retry failed reads and visits."),
        "index": ("cli.index:index_group", "Add kinds of index."),
        "files": ("cli.files:files_group", "List, check and delete the bytes of files that scopes keep."),
    },
    "Publish": {
        "dump": ("cli.dump:dump_group", "Write data dumps from the catalog, and Parquet from the dumps."),
        "leveldb": ("cli.leveldb:leveldb_group", "Build, list, fetch and verify LevelDB versions."),
        "mirror": ("cli.mirror:mirror_group", "Follow another instance's published files, without crawling."),
        "journal": ("cli.journal:journal_group", "Write, read and check the journal of all changes."),
        "export": ("cli.export:export_group", "Write files for other tools."),
    },
    "Operate": {
        "admin": ("cli.admin:admin_group", "Maintain and inspect a catalog and its storage."),
    },
}
"""Sections of the help. Each command name maps to the place of its definition and to the first sentence of its help.

So the list of commands is printed and completed without importing any command.
"""


class _Commands(click.Group):
    """The top-level group. It imports a command when it is called, and prints expected errors as one message.

    The exit code is 2 for wrong settings, and 1 for all other expected errors.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self._places: dict[str, str] = {}
        for section in _COMMANDS.values():
            for name, (place, short_help) in section.items():
                self._places[name] = place
                self.add_command(click.Command(name, short_help=short_help))  # for the list; see `get_command`

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._places:
            return None
        place = self._places[cmd_name]
        module, attribute = place.split(":")
        found: Any = getattr(import_module(f"pypi_assets.{module}"), attribute)
        command: click.Command = found(cmd_name) if place == _QUESTION else found
        return command

    def format_commands(self, _: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.commands))
        for title, section in _COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{width}}", short_help) for name, (_, short_help) in section.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        for argument in args:
            if not _is_utf_8(argument) and not Path(argument).exists():
                raise click.UsageError(f"not in UTF-8: {argument!r}; names and options must be UTF-8", ctx)
        index, others = self._divided(ctx, args)
        ctx.meta[_ARGUMENTS] = others
        return super().parse_args(ctx, [*index, *others])

    def _divided(self, ctx: click.Context, args: list[str]) -> tuple[list[str], list[str]]:
        """Separate `--index VALUE`, wherever it is before `--`, from the other arguments.

        If the command has its own option `--index`, an `--index` after the command's name belongs to the command.
        """
        index: list[str] = []
        others: list[str] = []
        rest = iter(args)
        for argument in rest:
            if argument == "--":
                others += [argument, *rest]
            elif argument.partition("=")[0] == _INDEX and not self._has_own_index(ctx, others):
                value = argument.partition("=")[2] if "=" in argument else next(rest, None)
                if value is None:
                    raise click.BadOptionUsage(_INDEX, f"Option {_INDEX!r} requires an argument.", ctx)
                index = [_INDEX, value]
            else:
                others.append(argument)
        return index, others

    def _has_own_index(self, ctx: click.Context, words: list[str]) -> bool:
        name = next((word for word in words if not word.startswith("-")), "")
        found = self.get_command(ctx, name)
        return found is not None and any(_INDEX in one.opts for one in found.params)

    def make_context(self, *arguments: Any, **settings: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **settings)
        except click.ClickException as error:
            raise _inert(error) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = [
            CompletionItem(name, help=listed.short_help)
            for name, listed in self.commands.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with _stopped_by_the_first_ctrl_c():
                return self._invoke_for_all(ctx) if ctx.params["index"] == _ALL_INDEXES else super().invoke(ctx)
        except KeyboardInterrupt:
            print_message(_STOPPED)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # the reader of the output has closed it; click exits quietly
            raise
        except (ExpectedError, OSError) as error:
            raise _failure(error) from error
        except click.ClickException as error:
            raise _inert(error) from None
        except (click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if database_failure := _database_failure(error):
                raise database_failure from error
            raise

    def _invoke_for_all(self, ctx: click.Context) -> None:
        """Run a command once for each index, and print the answers as one. A failure does not stop the next indexes."""
        from pypi_assets.setting_sources import read_all_indexes

        arguments: list[str] = ctx.meta[_ARGUMENTS]
        words = [word for word in arguments if not word.startswith("-")][:2]
        called = " ".join(words)
        if called == _OF_ALL_INDEXES or not {called, *words[:1]} & set(_OF_EACH_INDEX):
            raise click.UsageError(f"{_INDEX} {_ALL_INDEXES} works only with {', '.join(_OF_EACH_INDEX)}", ctx)
        indexes = read_all_indexes()
        if indexes is None:
            raise SettingsError(f"{_INDEX}: there are no indexes, since PYPI_ASSETS_INDEXES is not set")
        has_failed = False
        with terminal.answers_of_several() as answers:
            for name in indexes.names:
                answers.index = name
                try:
                    with self.make_context(ctx.info_name, [_INDEX, name, *arguments], obj=ctx.obj) as index_context:
                        super().invoke(index_context)
                except BrokenPipeError:
                    raise
                except (ExpectedError, OSError) as error:
                    has_failed = True
                    print_message(f"Error: {_failure(error).message}")
        if has_failed:
            raise click.exceptions.Exit(1)


_ARGUMENTS = f"{__name__}.arguments"
"""The key under which the call's click context stores the arguments without `--index`."""


class _IndexName(click.types.StringParamType):
    """The name of an index. The settings check it, so that a wrong name has the same message wherever it is given."""

    name = "name"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - the names are click's
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        from pypi_assets.setting_sources import read_all_indexes

        try:
            indexes = read_all_indexes()
        except SettingsError:
            return []
        names = [*indexes.names, _ALL_INDEXES] if indexes else []
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


class OwnProcess:
    """A mark in the click context: this process is the command line, and not a program that calls commands."""


class _SettingsFailure(click.ClickException):
    exit_code = 2


def _inert(error: click.ClickException) -> click.ClickException:
    """Return the error with control characters escaped, since its message may repeat arguments such as file names."""
    vars(error)["message"] = inert_lines(error.message)  # type checkers take `message` for final
    return error


def _failure(error: ExpectedError | OSError) -> click.ClickException:
    text = _describe_os_error(error) if isinstance(error, OSError) else str(error)
    text = "\n".join(map(plain, text.splitlines()))
    return _SettingsFailure(text) if isinstance(error, SettingsError) else click.ClickException(text)


def _describe_os_error(error: OSError) -> str:
    """Return the filename and the reason, without the error number."""
    if error.strerror is None:
        return str(error)
    return error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"


def _is_utf_8(text: str) -> bool:
    """Check whether an argument was valid UTF-8. Python keeps invalid bytes as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _database_failure(error: Exception) -> click.ClickException | None:
    """Return the failure to print if the database failed; None for a bug, or if SQLAlchemy did not raise `error`."""
    from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError

    from pypi_assets.catalog.database import database_failure

    if not isinstance(error, DBAPIError) or isinstance(error, DataError | IntegrityError | ProgrammingError):
        return None
    return click.ClickException(plain(database_failure(error)))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pypi-assets")
@click.option(
    _INDEX,
    type=_IndexName(),
    help="The index to use, as named in PYPI_ASSETS_INDEXES; all queries every index. Also works after the command.",
)
@click.pass_context
def cli(context: click.Context, index: str | None) -> None:
    """Keep an exact, queryable picture of a Python package index.

    `crawl` fills a catalog from the index, `dump` writes the catalog to files, `leveldb` builds small databases from
    the dumps, and `lookup` queries them. `status` shows the state of each stage and what to do next. Each answer is as
    of a serial, the number that the index gives to a change.

    Settings come from environment variables (PYPI_ASSETS_...) and from the file .env. Exit codes: 0 success, 1 failure,
    2 wrong usage or settings. An empty answer is a success.
    """
    from pypi_assets.setting_sources import read_variables, selected_index  # not needed for help and completion

    if index is not None:
        context.with_resource(selected_index(index))
    warnings = read_variables().warnings()
    if context.find_object(OwnProcess):
        from pypi_assets.logs import set_up_logs

        set_up_logs()
    for warning in warnings:
        print_message(warning)


def main() -> None:
    """Run the command line. The first Ctrl-C waits for open requests, the second exits at once."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop_at_once)

    from pypi_assets.sanitize import make_logs_inert

    make_logs_inert()
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    try:
        cli(prog_name="pypi-assets", obj=OwnProcess())
    except OSError as error:  # from standard output, outside any command; for example, the disk is full
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # otherwise Python would fail again to flush the output at exit
        print_message(f"Error: cannot write the output: {_describe_os_error(error)}")
        raise SystemExit(1) from None


@contextmanager
def _stopped_by_the_first_ctrl_c() -> Iterator[None]:
    """Let the first Ctrl-C raise KeyboardInterrupt while a command runs.

    Before and after, `main` has Ctrl-C exit at once. By default, click would print "Aborted!" and exit with 1.
    """
    is_of_main = signal.getsignal(signal.SIGINT) is _stop_at_once
    if is_of_main:
        signal.signal(signal.SIGINT, _stop)
    try:
        yield
    finally:
        if is_of_main:
            signal.signal(signal.SIGINT, _stop_at_once)


def _stop(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, _stop_at_once)
    raise KeyboardInterrupt


def _stop_at_once(_number: int, _frame: FrameType | None) -> None:
    terminal.show_cursor()
    print_message(_STOPPED)
    os._exit(INTERRUPTED)  # safe at any moment; a normal exit would wait for the threads
