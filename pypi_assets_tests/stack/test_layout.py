"""Where a stack has its files, and that its sockets fit and are private."""

import os
import stat
from pathlib import Path

import pytest

from pypi_assets.stack.layout import LONGEST_SOCKET_PATH, POSTGRES_SOCKET, Layout, StackError


def test_layout_all_paths_are_below_the_home(tmp_path: Path):
    layout = Layout(Path("/srv/home"))
    for path in (layout.logs, layout.dagster_home, layout.postgres, layout.supervisor_file, layout.sockets):
        assert path.is_relative_to(layout.home / "stack")
    assert layout.code_socket("pypi-assets") != layout.code_socket("pypi-assets-company")


def test_layout_a_long_home_has_short_sockets_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/tmp")
    homes = [Path("/srv", "x" * 120, name) for name in ("first", "second")]
    folders = {Layout(home).sockets for home in homes}
    assert len(folders) == 2
    for folder in folders:
        assert len(os.fsencode(folder / "postgres" / POSTGRES_SOCKET)) <= LONGEST_SOCKET_PATH
        assert folder.parent == Path("/tmp")


def test_make_folders_the_sockets_are_for_this_user_alone(tmp_path: Path):
    layout = Layout(tmp_path)
    layout.make_folders()
    layout.make_folders()
    mode = stat.S_IMODE(layout.sockets.stat().st_mode)
    assert not mode & 0o066  # others may at most pass through it
    assert layout.logs.is_dir()


def test_make_folders_a_link_in_place_of_the_sockets_is_rejected(tmp_path: Path):
    layout = Layout(tmp_path / "home")
    layout.folder.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    layout.sockets.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StackError, match=str(layout.sockets)):
        layout.make_folders()
