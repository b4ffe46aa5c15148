"""Published versions and the catalog of their serial answer the same about a lock."""

from dataclasses import replace
from pathlib import Path

import pytest

from pypi_assets.locks.environments import ANY_ENVIRONMENT, named_environment
from pypi_assets.locks.pins import RemarkKind
from pypi_assets.lookup.locked_answers import LockedPins
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.lookup.publisher import Publisher
from pypi_assets_tests.named import unnamed


@pytest.mark.parametrize("environment", [ANY_ENVIRONMENT, named_environment("3.12", "linux")])
def test_both_sources_answer_the_same(
    publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment
) -> None:
    clear_settings(monkeypatch)
    monkeypatch.setenv("PYPI_ASSETS_STORAGE_URL", (tmp_path / "storage").as_uri())
    lock = tmp_path / "requirements.txt"
    lock.write_text("demo==1.0.0\ndemo_b==1.0\nnope==1\n./local\n")
    pins = LockedPins(lock, environment)
    published, past = pins.published(), pins.at_serial(publisher.small.catalog, 100)
    assert published == replace(past, epoch=None)
    assert [one.modules for one in published.releases] == [{"demo"}, {"demo.b"}]
    assert published.pip_order == ("demo-b", "demo")
    texts = {remark.kind: remark.text.removeprefix(f"{lock}:") for remark in published.remarks}
    assert unnamed(texts[RemarkKind.UNKNOWN], "3", "nope==1", "100") == []
    assert texts.keys() == {RemarkKind.ELSEWHERE, RemarkKind.UNKNOWN, RemarkKind.FROM_SDIST}
    lock.write_text("demo==7\n")
    for answer in (
        LockedPins(lock, environment).published(),
        LockedPins(lock, environment).at_serial(publisher.small.catalog, 100),
    ):
        assert unnamed(answer.remarks[0].text, "demo==7", "100", "1") == []
