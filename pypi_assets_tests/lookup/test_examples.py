"""The examples of the docs run and print the documented output."""

import re
from pathlib import Path

import pytest

from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.lookup.publisher import Publisher

DOCS = Path(__file__).parent.parent.parent / "docs"


def test_examples_of_the_docs_run(
    publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for dataset in DATASETS:
        build_version(dataset, storage=publisher.storage, catalog=publisher.small.catalog)
    clear_settings(monkeypatch)
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"```python\n(.*?)```", (DOCS / "ask.md").read_text(), re.DOTALL)
    assert len(examples) == 3
    for example in examples:
        exec(example, {})
    shown = capsys.readouterr().out
    assert "demo ['1.0']\nas of serial 100, from version 1\ndemo-1.0.tar.gz ['base', \"b.c; extra=='x'\"]\n" in shown
    assert "demo-b ['1.0'] [] []\n" in shown
    assert "\n('demo',)\n" in shown
    assert "demo demo demo ['1.0']\n" in shown
    assert "demo.b demo-b\n2 100\n" in shown
