"""Components are created as the settings define."""

import io
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from pypi_assets import components
from pypi_assets.catalog.database import NoCatalogError, catalog_of
from pypi_assets.components import catalog_from, catalog_to_read, existing_catalog_from, polling_policy, readers_from
from pypi_assets.distributions.sources import SeekableFileSource
from pypi_assets.settings import load_settings
from pypi_assets.visit_policies import VISIT_POLICIES
from pypi_assets_tests.builders import make_wheel


@pytest.mark.parametrize(("connections", "processors", "readers"), [(3, 1, 3), (1, 2, 2), (1, None, 1)])
def test_reader_pool_has_a_reader_per_connection_and_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connections: int, processors: int | None, readers: int
) -> None:
    monkeypatch.setattr(components.os, "cpu_count", lambda: processors)
    wheel = make_wheel(tmp_path, "demo", "1.0")
    all_at_work = threading.Barrier(readers)

    class Download(SeekableFileSource):
        def read_at(self, offset: int, size: int) -> bytes:
            all_at_work.wait(60)
            return super().read_at(offset, size)

    def errors(_: int) -> object:
        return pool.read(Download(io.BytesIO(wheel.read_bytes())), wheel.name).record.error

    with (
        readers_from(load_settings(home=tmp_path, max_connections=connections)) as pool,
        ThreadPoolExecutor(readers) as threads,
    ):
        assert list(threads.map(errors, range(readers))) == [None] * readers


def test_existing_catalog_is_opened_and_missing_one_is_an_error(tmp_path: Path) -> None:
    home = tmp_path / "home"
    settings = load_settings(home=home)
    with pytest.raises(NoCatalogError, match=f"{home}.*PYPI_ASSETS_HOME"):
        existing_catalog_from(settings)
    assert not home.exists()
    catalog_from(settings).close()
    existing_catalog_from(settings).close()
    elsewhere = load_settings(home=home, database_url=f"sqlite:///{tmp_path}/other.sqlite")
    with pytest.raises(NoCatalogError, match=r"sqlite:///.*/other\.sqlite.*PYPI_ASSETS_DATABASE_URL"):
        existing_catalog_from(elsewhere)


def test_visit_policy_of_the_settings_reaches_each_catalog_and_polls(tmp_path: Path) -> None:
    for name, policy in VISIT_POLICIES.items():
        settings = load_settings(home=tmp_path, visit_policy=name)
        for open_one in (catalog_from, existing_catalog_from, catalog_to_read):
            with closing(open_one(settings)) as catalog:
                assert catalog.visit_policy is policy
                with catalog.read() as connection:
                    assert catalog_of(connection).visit_policy is policy
        assert polling_policy(settings).visits is policy
