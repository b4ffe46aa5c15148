"""The programs of a stack: their names, what each waits for, and the address of each."""

import os
import sys
from pathlib import Path

import pytest

from pypi_assets.extras import install_commands
from pypi_assets.stack.layout import Layout, StackError
from pypi_assets.stack.postgres import database_url
from pypi_assets.stack.programs import Program
from pypi_assets.stack.running import stack_variables
from pypi_assets.workspace import CodeLocation
from pypi_assets_tests.stack.plans import plan, server


def by_name(programs: list[Program]) -> dict[str, Program]:
    return {program.name: program for program in programs}


def test_programs_with_database_only_are_postgresql(tmp_path: Path):
    alone = plan(tmp_path, postgres=server(Layout(tmp_path)), only_database=True)
    assert [program.name for program in alone.programs()] == ["postgres"]


def test_programs_on_postgresql_wait_for_the_databases_or_the_code(tmp_path: Path):
    layout = Layout(tmp_path)
    found = by_name(plan(tmp_path, postgres=server(layout)).programs())
    assert list(found) == ["postgres", "code", "daemon", "webserver", "follower", "service", "metrics"]
    databases = (database_url(layout, "catalog"), database_url(layout, "dagster"))
    code = f"unix:{layout.code_socket('pypi-assets')}"
    assert {name: program.awaits for name, program in found.items()} == {
        "postgres": (),
        "code": databases,
        "daemon": (code,),
        "webserver": (code,),
        "follower": databases,
        "service": databases,
        "metrics": databases,
    }
    assert found["postgres"].answers_at == databases[0]
    assert found["code"].answers_at == code
    assert found["service"].answers_at == "http://127.0.0.1:8001/healthz"
    assert found["webserver"].answers_at == "http://127.0.0.1:3001/server_info"
    assert found["metrics"].answers_at == "http://127.0.0.1:9001/metrics"


def test_programs_on_sqlite_have_no_postgresql(tmp_path: Path):
    found = by_name(plan(tmp_path).programs())
    assert "postgres" not in found
    assert found["follower"].awaits == found["code"].awaits == ()


def test_programs_without_follower_have_a_first_crawl_that_ends(tmp_path: Path):
    found = by_name(plan(tmp_path, follows=False).programs())
    assert "follower" not in found
    assert found["first"].ends
    assert found["first"].command[-2:] == ("follow", "--once")
    assert not any(program.ends for name, program in found.items() if name != "first")


def test_programs_of_several_indexes_have_a_code_server_each(tmp_path: Path):
    locations = [CodeLocation(), CodeLocation("pypi-assets-company", "index_company")]
    found = by_name(plan(tmp_path, locations=locations).programs())
    code, company = found["code"], found["code-pypi-assets-company"]
    assert "--attribute" not in code.command
    assert company.command[company.command.index("--attribute") + 1] == "index_company"
    assert set(found["webserver"].awaits) == {code.answers_at, company.answers_at}


def test_programs_of_several_indexes_have_a_follower_each(tmp_path: Path):
    for follows, name, option in ((True, "follower", "--begin"), (False, "first", "--once")):
        found = by_name(plan(tmp_path, other_indexes=["company"], follows=follows).programs())
        assert found[name].command[1:] == ("follow", option)
        assert found[f"{name}-company"].command[1:] == ("--index", "company", "follow", option)
        assert [one.name for one in found.values() if one.ends] == ([] if follows else ["first", "first-company"])


def test_programs_of_dagster_log_in_the_format_of_the_plan(tmp_path: Path):
    found = by_name(plan(tmp_path, log_format="json").programs())
    for name in ("code", "daemon", "webserver"):
        assert found[name].command[-2:] == ("--log-format", "json")


def test_programs_with_celery_require_redis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StackError, match="redis-server"):
        plan(tmp_path, parts=frozenset({"celery"})).programs()
    redis = tmp_path / "redis-server"
    redis.touch(0o755)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("sys.executable", str(tmp_path / "python"))
        with pytest.raises(StackError) as missing:
            plan(tmp_path, parts=frozenset({"celery"})).programs()
    assert all(command in str(missing.value) for command in install_commands("stack,celery"))
    found = by_name(plan(tmp_path, parts=frozenset({"celery"})).programs())
    assert found["redis"].command[0] == str(redis)
    assert found["redis"].answers_at in found["worker"].awaits
    variables = stack_variables(plan(tmp_path, parts=frozenset({"celery"})), {"PYTHONPATH": "/srv/code"})
    assert variables["PYTHONPATH"].split(os.pathsep) == [str(Layout(tmp_path).celery), "/srv/code"]
    assert variables["CELERY_BROKER_URL"] == f"redis+socket://{Layout(tmp_path).redis_socket}"


def test_stack_variables_keep_set_values(tmp_path: Path):
    on_postgres = plan(tmp_path, postgres=server(Layout(tmp_path)), variables={"PYPI_ASSETS_SENSORS_ON": "true"})
    found = stack_variables(on_postgres, {})
    assert found["DAGSTER_HOME"] == str(Layout(tmp_path).dagster_home)
    assert found["DAGSTER_POSTGRES_URL"].startswith("postgresql+psycopg2://")
    assert found["PYPI_ASSETS_SENSORS_ON"] == "true"
    given = {"DAGSTER_HOME": "/srv/dagster", "DAGSTER_POSTGRES_URL": "postgresql://me:secret@host/dagster"}
    found = stack_variables(on_postgres, given)
    assert found["DAGSTER_HOME"] == "/srv/dagster"
    assert "secret" not in str(found)


def test_launch_command_contains_addresses_user_and_lock(tmp_path: Path):
    [postgres, code, *_] = plan(tmp_path, postgres=server(Layout(tmp_path), "pgserver")).programs()
    launched = postgres.launch_command()
    assert launched[:3] == (sys.executable, "-m", "pypi_assets.stack.launch")
    own = launched[: launched.index("--")]
    assert own[own.index("--user") + 1] == "pgserver"
    assert own[own.index("--postgres-lock") + 1].endswith("postmaster.pid")
    assert own[own.index("--stop-signal") + 1] == "INT"
    assert launched[launched.index("--") + 1 :] == postgres.command
    launched = code.launch_command()
    assert [launched[number + 1] for number, word in enumerate(launched) if word == "--await"] == list(code.awaits)
    assert "--user" not in launched
