"""The `devindex` command, which serves the index of a folder, and changes it, even while it is being served."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EADDRINUSE
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pypi_assets.devindex.devindex_errors import DevIndexError

if TYPE_CHECKING:
    from pypi_assets.devindex.history import History

_FOLDER = click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
_PROJECT = click.argument("project")
_VERSION = click.argument("version")


@click.group()
def devindex() -> None:
    """A small package index over a folder of real files, for development, demos and tests.

    Every command names the index's FOLDER, which is created if it is missing. A running server of the same folder
    shows a change immediately. An invalid operation is rejected with exit code 1.
    """


def _command(name: str, example: str) -> Callable[[Callable[..., None]], click.Command]:
    """Register a subcommand with a folder, and with an example at the end of its help."""

    def register(function: Callable[..., None]) -> click.Command:
        epilog = f"Example: pypi-assets devindex {name} {example}"
        return devindex.command(name, epilog=epilog)(_FOLDER(function))

    return register


@contextmanager
def _refusals_as_failures() -> Iterator[None]:
    try:
        yield
    except (DevIndexError, OSError) as error:
        raise click.ClickException(str(error)) from error


def _do(folder: Path, done: str, operation: "Callable[[History], int]") -> None:
    from pypi_assets.devindex.history import History

    with _refusals_as_failures():
        serial = operation(History(folder))
    click.echo(f"{done} (serial {serial})")


@_command("serve", "my-index --port 8137")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="The port to listen on; 0 takes a free one.")
@click.option(
    "--faults",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A fault plan (TOML): the faults to inject, and the requests to inject them into.",
)
@click.option("--log-requests", is_flag=True, help="Write a line for each request to standard output.")
def serve_command(folder: Path, host: str, port: int, faults: Path | None, log_requests: bool) -> None:
    """Serve the index of FOLDER until interrupted.

    Prints its URL once it answers.
    """
    from pypi_assets.devindex.faults import FaultPlan
    from pypi_assets.devindex.server import serve

    with _refusals_as_failures():
        plan = None if faults is None else FaultPlan.load(faults)
        folder.mkdir(parents=True, exist_ok=True)
    try:
        serve(folder, host, port, ready=click.echo, faults=plan, log_requests=log_requests)
    except OSError as error:
        reason = error.strerror or error
        if error.errno == EADDRINUSE:
            reason = "it is in use; stop what listens there, or choose another with --port (0 takes a free one)"
        raise click.ClickException(f"cannot listen at port {port} of {host}: {reason}") from error


@_command("add", "my-index dist/demo-1.0-py3-none-any.whl dist/demo-1.0.tar.gz")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--project", help="The project, if the files do not name it.")
@click.option("--version", help="The version, if the files do not name it.")
@click.option("--own-release", is_flag=True, help="Create a release even if another spelling of the version has one.")
@click.option("--during-quarantine", is_flag=True, help="Also upload to a quarantined project or release.")
def add_command(
    folder: Path,
    files: tuple[Path, ...],
    project: str | None,
    version: str | None,
    own_release: bool,
    during_quarantine: bool,
) -> None:
    """Upload FILES in their order.

    New projects and releases are registered.
    """
    for path in files:
        add = partial(
            _add,
            path=path,
            project=project,
            version=version,
            own_release=own_release,
            during_quarantine=during_quarantine,
        )
        _do(folder, f"added {path.name}", add)


def _add(history: "History", *, path: Path, **options: Any) -> int:
    return history.add(path, **options)


@_command("remove-file", "my-index demo-1.0.tar.gz")
@click.argument("filename")
def remove_file_command(folder: Path, filename: str) -> None:
    """Remove one file.

    Its URL keeps working, and its name is never used again.
    """
    _do(folder, f"removed {filename}", lambda history: history.remove_file(filename))


@_command("yank", 'my-index demo 1.0 --reason "breaks on Python 3.14"')
@_PROJECT
@_VERSION
@click.option("--reason", help="The reason to show on the project's page.")
def yank_command(folder: Path, project: str, version: str, reason: str | None) -> None:
    """Yank a release."""
    _do(folder, f"yanked {project} {version}", lambda history: history.yank(project, version, reason))


@_command("unyank", "my-index demo 1.0")
@_PROJECT
@_VERSION
def unyank_command(folder: Path, project: str, version: str) -> None:
    """Undo the yank of a release."""
    _do(folder, f"unyanked {project} {version}", lambda history: history.unyank(project, version))


@_command("remove-release", "my-index demo 1.0")
@_PROJECT
@_VERSION
def remove_release_command(folder: Path, project: str, version: str) -> None:
    """Remove a release with all its files, in one event."""
    _do(folder, f"removed {project} {version}", lambda history: history.remove_release(project, version))


@_command("quarantine-release", "my-index demo 1.0")
@_PROJECT
@_VERSION
def quarantine_release_command(folder: Path, project: str, version: str) -> None:
    """Hide a release and its files."""
    _do(folder, f"quarantined {project} {version}", lambda history: history.quarantine_release(project, version))


@_command("unquarantine-release", "my-index demo 1.0")
@_PROJECT
@_VERSION
def unquarantine_release_command(folder: Path, project: str, version: str) -> None:
    """Show a quarantined release again."""
    _do(
        folder,
        f"cleared the quarantine of {project} {version}",
        lambda history: history.unquarantine_release(project, version),
    )


@_command("remove-project", "my-index demo")
@_PROJECT
def remove_project_command(folder: Path, project: str) -> None:
    """Remove a project with all its files, in one event.

    Its name can be registered again.
    """
    _do(folder, f"removed {project}", lambda history: history.remove_project(project))


@_command("quarantine", "my-index demo")
@_PROJECT
def quarantine_command(folder: Path, project: str) -> None:
    """Hide a project and all its files."""
    _do(folder, f"quarantined {project}", lambda history: history.quarantine(project))


@_command("unquarantine", "my-index demo")
@_PROJECT
def unquarantine_command(folder: Path, project: str) -> None:
    """Show a quarantined project again."""
    _do(folder, f"cleared the quarantine of {project}", lambda history: history.unquarantine(project))


@_command("archive", "my-index demo")
@_PROJECT
def archive_command(folder: Path, project: str) -> None:
    """Mark a project as archived.

    This writes no event.
    """
    _do(folder, f"archived {project}", lambda history: history.archive(project))


@_command("unarchive", "my-index demo")
@_PROJECT
def unarchive_command(folder: Path, project: str) -> None:
    """Mark an archived project as active.

    This writes no event.
    """
    _do(folder, f"unarchived {project}", lambda history: history.unarchive(project))
