"""The metrics, labels, commands and pages named by the alerts and the dashboard of `deploy/monitoring/` exist.

`deploy/test_monitoring.py` runs them with Prometheus itself.
"""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from prometheus_client.parser import text_string_to_metric_families

from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.cli import cli
from pypi_assets.journal.signing import sign_checkpoint
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.served_index import ServedIndex, followed_index

ROOT = Path(__file__).parent.parent
MONITORING = ROOT / "deploy" / "monitoring"
OF_PROMETHEUS = {"job", "instance"}
"""Labels that Prometheus adds to scraped series."""

Series = dict[str, list[dict[str, str]]]


def alerts() -> list[dict[str, Any]]:
    """Return the rules of `alerts.yml`."""
    [group] = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]
    return list(group["rules"])


def queries() -> list[tuple[str, str]]:
    """Return each expression of the dashboard with its legend."""
    panels = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    return [(target["expr"], target["legendFormat"]) for panel in panels for target in panel["targets"]]


def fill(index: ServedIndex, folder: Path, environment: pytest.MonkeyPatch) -> None:
    """Create everything that is measured: answers, a signed journal with a consumer, a scope, a Dagster instance."""
    home = folder / "dagster"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}")
    environment.setenv("DAGSTER_HOME", str(home))
    with dg.DagsterInstance.get() as instance:
        instance.event_log_storage.set_concurrency_slots("index", 2)
    index.wheel("demo", "1.0")
    for line in (
        *("crawl full", "dump full --shards 1", "leveldb update", "scope create mine demo", "journal write"),
        "journal tail --consumer mirror --stream observed",
    ):
        result = CliRunner().invoke(cli, line.split(), catch_exceptions=False)
        assert result.exit_code == 0, result.output
    storage = open_storage((folder / "home" / "storage").as_uri())
    sign_checkpoint(storage, JournalStream.CONTENT, Ed25519PrivateKey.generate())


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Series:
    """Return the labels of each series that `pypi-assets admin metrics` prints, by metric name."""
    folder = tmp_path_factory.mktemp("monitoring")
    with pytest.MonkeyPatch.context() as environment, followed_index(folder, environment) as index:
        fill(index, folder, environment)
        text = CliRunner().invoke(cli, ["admin", "metrics"], catch_exceptions=False).stdout
    series: Series = {"up": [{}]}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            series.setdefault(sample.name, []).append(dict(sample.labels))
    return series


def require_series(expression: str, measured: Series) -> set[str]:
    """Assert that all series selected by an expression exist. Return the labels of its metrics."""
    labels = set(OF_PROMETHEUS)
    selectors = re.findall(r"\b(pypi_assets_\w+|up)\b(?:\{([^}]*)\})?", expression)
    assert selectors, expression
    for name, matchers in selectors:
        assert name in measured, expression
        labels |= {label for one in measured[name] for label in one}
        for label, operator, value in re.findall(r'(\w+)(!?=~?)"([^"]*)"', matchers):
            values = {one.get(label) for one in measured[name]} - {None}
            if label not in OF_PROMETHEUS:
                assert values - {value} if operator == "!=" else value in values, expression
    return labels


def test_alerts_and_panels_select_existing_series(measured: Series) -> None:
    for alert in alerts():
        labels = require_series(alert["expr"], measured)
        for text in alert["annotations"].values():
            assert set(re.findall(r"\$labels\.(\w+)", text)) <= labels, alert["alert"]
    for expression, legend in queries():
        assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= require_series(expression, measured), expression


def test_commands_and_pages_named_by_alerts_exist() -> None:
    for alert in alerts():
        description = alert["annotations"]["description"]
        commands = re.findall(r"`((?:pypi-assets|dagster) [^`]+)`", description)
        assert commands, alert["alert"]
        for command in commands:
            program, *words = shlex.split(command)
            if program == "pypi-assets":
                names = [word for word in words if re.fullmatch("[a-z]+", word)]
                result = CliRunner().invoke(cli, [*names, "--help"])
                assert result.exit_code == 0, command
                assert {word for word in words if word.startswith("--")} <= set(re.findall(r"--[a-z-]+", result.output))
        page, _, anchor = alert["annotations"]["docs"].partition("#")
        headings = re.findall(r"(?m)^#+ (.*)$", (ROOT / page).read_text())
        assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_alerts_have_an_example_and_a_row_in_the_docs() -> None:
    names = [alert["alert"] for alert in alerts()]
    assert len(set(names)) == len(names) >= 8
    examples = yaml.safe_load((MONITORING / "alerts_test.yml").read_text())["tests"]
    samples = [one for example in examples for test in example["promql_expr_test"] for one in test["exp_samples"]]
    assert set(re.findall(r'alertname="(\w+)"', " ".join(one["labels"] for one in samples))) == set(names)
    rows = re.findall(r"(?m)^\| `(PypiAssets\w+)` \|", (ROOT / "docs" / "operations.md").read_text())
    assert rows == names


def test_prometheus_scrapes_the_metrics_port_with_the_job_of_the_alerts() -> None:
    config = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
    [job] = config["scrape_configs"]
    [target] = [target for one in job["static_configs"] for target in one["targets"]]
    ports = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())["services"]["metrics"]["ports"]
    assert ports[0].startswith(f"{target}:")
    assert f'up{{job="{job["job_name"]}"}}' in "".join(alert["expr"] for alert in alerts())
    assert [(MONITORING / name).exists() for name in config["rule_files"]] == [True]


def test_panels_have_unique_ids() -> None:
    panels = json.loads((MONITORING / "dashboard.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) > 10
