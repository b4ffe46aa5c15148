"""Dagster with two indexes loads two code locations, and a job of each follows its own index."""

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.reports.live_files import live_files
from pypi_assets_tests.served_dagster import ServedDagster, served_dagster
from pypi_assets_tests.served_index import served_index

pytestmark = pytest.mark.deploy

LOCATIONS = """{workspaceOrError {... on Workspace {locationEntries {name locationOrLoadError {__typename
 ... on PythonError {message} ... on RepositoryLocation {repositories {assetNodes {assetKey {path}}}}}}}}}"""
LAUNCH = """mutation ($params: ExecutionParams!) {launchRun(executionParams: $params) {__typename
 ... on LaunchRunSuccess {run {runId}} ... on PythonError {message}}}"""


def locations(dagster: ServedDagster) -> dict[str, set[str]] | None:
    """Return the asset keys of each code location, or None while one of them is loading."""
    found: dict[str, set[str]] = {}
    for entry in dagster.query(LOCATIONS)["workspaceOrError"]["locationEntries"]:
        loaded = entry["locationOrLoadError"]
        if loaded is None:
            return None
        assert loaded["__typename"] == "RepositoryLocation", loaded
        nodes = [node for repository in loaded["repositories"] for node in repository["assetNodes"]]
        found[entry["name"]] = {"/".join(node["assetKey"]["path"]) for node in nodes}
    return found


def launch(dagster: ServedDagster, location: str, job: str) -> str:
    selector = {"repositoryLocationName": location, "repositoryName": "__repository__", "jobName": job}
    launched = dagster.query(LAUNCH, params={"selector": selector, "mode": "default"})["launchRun"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    return str(launched["run"]["runId"])


def ended(dagster: ServedDagster, run: str) -> str | None:
    status = dagster.query("query ($id: ID!) {runOrError(runId: $id) {... on Run {status}}}", id=run)
    found = str(status["runOrError"]["status"])
    return found if found in {"SUCCESS", "FAILURE", "CANCELED"} else None


def names(path: Path) -> set[str]:
    with closing(open_catalog(f"sqlite:///{path}")) as catalog:
        return {file.project for file in live_files(catalog)}


@pytest.mark.nightly
def test_two_locations_follow_their_own_indexes(tmp_path: Path) -> None:
    with served_index(tmp_path / "public") as public, served_index(tmp_path / "company") as company:
        public.wheel("of-all", "1.0")
        company.wheel("of-us", "1.0")
        home, indexes, workspace = (tmp_path / name for name in ("home", "indexes.toml", "workspace.yaml"))
        indexes.write_text(
            f'[public]\nurl = "{public.url}"\ndefault = true\n[our-company]\nurl = "{company.url}"\nprivate = true\n'
        )
        variables = {"PYPI_ASSETS_HOME": str(home), "PYPI_ASSETS_INDEXES": str(indexes)}
        command = [Path(sys.executable).with_name("pypi-assets"), "admin", "indexes", "--workspace"]
        workspace.write_text(subprocess.check_output(command, env=os.environ | variables, text=True))
        (tmp_path / "dagster").mkdir()
        with served_dagster(tmp_path / "dagster", variables, workspace) as dagster:
            found = dagster.until(lambda: locations(dagster), 180)
            assert set(found) == {"pypi-assets", "pypi-assets-our-company"}
            assert found["pypi-assets-our-company"] == {f"our_company/{key}" for key in found["pypi-assets"]}
            runs = [
                launch(dagster, "pypi-assets", "full_crawl"),
                launch(dagster, "pypi-assets-our-company", "our_company__full_crawl"),
            ]
            assert [dagster.until(lambda run=run: ended(dagster, run), 600) for run in runs] == ["SUCCESS"] * 2  # type: ignore[misc]
        assert names(home / "catalog.sqlite") == {"of-all"}
        assert names(home / "indexes" / "our-company" / "catalog.sqlite") == {"of-us"}
