"""The home of each release is upgraded, gives the same answers as before, and continues to follow its index."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pypi_assets.devindex.history import History
from pypi_assets_tests.builders import make_wheel
from pypi_assets_tests.upgrades.recorded_home import CHECKS, HOMES, opened, record, unpack

PYTHON = Path(sys.executable)

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record a home with this version, so that the checks are tested before there is another release."""
    folder = tmp_path_factory.mktemp("own")
    record(folder / "own.tar.gz", folder / "recorded", PYTHON)
    return folder / "own.tar.gz"


@pytest.fixture
def archives(own_home: Path) -> list[Path]:
    return [own_home, *sorted(HOMES.glob("*.tar.gz"))]


def test_recorded_home_answers_as_before_and_continues_to_follow(archives: list[Path], tmp_path: Path) -> None:
    for archive in archives:
        folder = tmp_path / archive.name
        serials, answers = unpack(archive, folder)
        with opened(folder, PYTHON) as home:
            home.run("admin migrate")
            assert home.answers(serials) == answers, archive.name
            newest = make_wheel(tmp_path, "delta", "2.0", requires_dist=["beta"])
            serial = History(folder / "index").add(newest, at=datetime(2026, 2, 1, tzinfo=UTC))
            home.update()
            *_, printed = home.run(*CHECKS, "lookup dependents beta --json")
            dependents = json.loads(printed)
            assert "delta" in {dependent["normalized"] for dependent in dependents}
            assert serial > max(serials)
            after = home.answers(serials)
        assert {name: answer for name, answer in after.items() if "--at" in name} == {
            name: answer for name, answer in answers.items() if "--at" in name
        }, archive.name
