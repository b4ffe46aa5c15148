"""`docker compose up` accepts the files of deploy/ once `make_secrets` has run.

This is tested without a container engine: `data/compose-spec.json` is the schema of the Compose specification, and
`docker-compose config` merges files and replaces variables.
"""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from pypi_assets_tests.deploy.services import DEPLOY
from pypi_assets_tests.test_deploy import COMPOSE, make_secrets

SCHEMA = Path(__file__).parent.parent / "data" / "compose-spec.json"
MADE_BY_HAND = {"certificates"}
COMBINATIONS = [COMPOSE[:1], COMPOSE[:2], (COMPOSE[0], COMPOSE[2]), COMPOSE]
needs_compose = pytest.mark.skipif(
    not shutil.which("docker-compose"), reason="docker-compose is not installed: make compose"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Copy deploy/ and run `make_secrets` in the copy."""
    copy = tmp_path / "checkout" / "deploy"
    shutil.copytree(DEPLOY, copy, ignore=shutil.ignore_patterns(".env", "secrets", "certificates"))
    assert make_secrets(copy, "me@example.org").returncode == 0
    return copy


def config(folder: Path, *files: str) -> "subprocess.CompletedProcess[str]":
    """Run `docker-compose config`. On Debian 12, it is an old program that does not know the key `name`."""
    version = subprocess.check_output(["docker-compose", "version", "--short"], text=True)
    if version.removeprefix("v").startswith("1."):
        text = (folder / "compose.yaml").read_text()
        (folder / "compose.yaml").write_text(text.replace("name: pypi-assets\n", ""))
    named = [part for name in files for part in ("--file", name)]
    return subprocess.run(
        ["docker-compose", *named, "config"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_compose_files_follow_the_specification():
    schema = json.loads(SCHEMA.read_text())
    validator = jsonschema.Draft7Validator(schema)
    for name in COMPOSE:
        content = yaml.safe_load((DEPLOY / name).read_text())
        assert [error.message for error in validator.iter_errors(content)] == [], name
        content["services"][next(iter(content["services"]))]["mem_limits"] = "1g"
        assert not validator.is_valid(content)


def test_image_is_built_by_one_service_and_pulled_by_none():
    services = [
        (name, service)
        for file in COMPOSE
        for name, service in yaml.safe_load((DEPLOY / file).read_text())["services"].items()
        if service.get("image", "").startswith("pypi-assets:")
    ]
    assert len({service["image"] for _, service in services}) == 1
    assert {service["pull_policy"] for _, service in services} == {"never"}
    assert [name for name, service in services if "build" in service] == ["code"]


@pytest.mark.deploy
@needs_compose
def test_compose_resolves_all_variables_and_finds_all_files(folder: Path, subtests: pytest.Subtests):
    for files in COMBINATIONS:
        with subtests.test(files=files):
            done = config(folder, *files)
            assert done.returncode == 0, done.stderr
            assert "${" not in done.stdout
            merged: dict[str, Any] = yaml.safe_load(done.stdout)
            services = merged["services"]
            started = {name: service for name, service in services.items() if "profiles" not in service}
            secrets = {name for service in started.values() for name in secret_names(service)}
            assert [name for name in secrets if not Path(merged["secrets"][name]["file"]).is_file()] == []
            assert len(secrets) >= 5
            assert all(service["image"] for service in services.values())
            assert services["code"]["build"]["args"]["BASE"].startswith("python:")
            assert services["code"]["environment"]["PYPI_ASSETS_CONTACT"] == "me@example.org"
            mounted = {source(mount) for service in services.values() for mount in service.get("volumes", ())}
            paths = {path for path in mounted if path.startswith("/")}
            assert len(paths) >= 3
            missing = {Path(path).name for path in paths if not Path(path).exists()}
            assert missing == (MADE_BY_HAND if COMPOSE[2] in files else set())


def secret_names(service: dict[str, Any]) -> set[str]:
    return {one["source"] if isinstance(one, dict) else one for one in service.get("secrets", ())}


def source(mount: "str | dict[str, Any]") -> str:
    """Return the volume or the file of this machine that is mounted."""
    return mount.partition(":")[0] if isinstance(mount, str) else str(mount["source"])


@pytest.mark.deploy
@needs_compose
def test_compose_adds_the_secrets_of_celery_to_those_of_each_service(folder: Path):
    merged = yaml.safe_load(config(folder, *COMPOSE[:2]).stdout)["services"]
    for name in ("code", "daemon", "webserver", "worker"):
        assert {"database_url", "dagster_postgres_url", "celery_broker_url"} <= secret_names(merged[name])
        assert merged[name]["environment"]["DAGSTER_HOME"] == "/var/lib/pypi-assets/celery"


@pytest.mark.deploy
@needs_compose
def test_compose_without_environment_file_names_make_secrets(folder: Path):
    (folder / ".env").unlink()
    done = config(folder, COMPOSE[0])
    assert done.returncode != 0
    assert "deploy/make_secrets" in done.stderr
