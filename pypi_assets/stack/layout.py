"""Folders, files and sockets of a stack, all below the home of its catalog."""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pypi_assets.errors import ExpectedError

LONGEST_SOCKET_PATH = 100
"""The kernel takes 103 or 107 bytes, depending on the system."""
POSTGRES_SOCKET = ".s.PGSQL.5432"


class StackError(ExpectedError):
    """The stack cannot be started or reached; the text names what to change or run."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of a home's stack.

    >>> Layout(Path("/srv/home")).supervisor_file.as_posix()
    '/srv/home/stack/supervisord.conf'
    """

    home: Path

    @property
    def folder(self) -> Path:
        return self.home / "stack"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def dagster_home(self) -> Path:
        return self.folder / "dagster"

    @property
    def postgres(self) -> Path:
        return self.folder / "postgres"

    @property
    def postgres_programs(self) -> Path:
        """A link to the folder of PostgreSQL's programs, such as `pg_dump`."""
        return self.folder / "programs"

    @property
    def celery(self) -> Path:
        return self.folder / "celery"

    @property
    def redis(self) -> Path:
        return self.folder / "redis"

    @property
    def supervisor_file(self) -> Path:
        return self.folder / "supervisord.conf"

    @property
    def description_file(self) -> Path:
        return self.folder / "stack.json"

    @property
    def lock_file(self) -> Path:
        return self.folder / "up.lock"

    @property
    def sockets(self) -> Path:
        """The folder of all sockets. It is below the temporary folder if its path would be too long for a socket."""
        near = self.folder / "run"
        if len(os.fsencode(near / "postgres" / POSTGRES_SOCKET)) <= LONGEST_SOCKET_PATH:
            return near
        digest = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"pypi-assets-{os.geteuid()}-{digest}"

    @property
    def postgres_sockets(self) -> Path:
        return self.sockets / "postgres"

    @property
    def supervisor_socket(self) -> Path:
        return self.sockets / "supervisor"

    @property
    def redis_socket(self) -> Path:
        return self.sockets / "redis"

    def code_socket(self, location: str) -> Path:
        """The socket of a code location's server."""
        digest = hashlib.sha256(location.encode()).hexdigest()[:8]
        return self.sockets / f"code-{digest}"

    def make_folders(self) -> None:
        """Makes the folders that are missing. Raises StackError if another user has made the folder of sockets."""
        for folder in (self.folder, self.logs, self.dagster_home):
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        self.make_sockets_folder()

    def make_sockets_folder(self) -> None:
        """Makes the folder of sockets, which the temporary folder may have lost since. Raises StackError as above."""
        self.sockets.mkdir(mode=0o700, exist_ok=True)
        owner = self.sockets.lstat().st_uid
        if self.sockets.is_symlink() or owner != os.geteuid():
            raise StackError(f"{self.sockets} belongs to user {owner}: delete it, or choose another --folder")
        # PostgreSQL of root is another user's process, which has to reach its own folder in this one
        self.sockets.chmod(0o711 if os.geteuid() == 0 else 0o700)
