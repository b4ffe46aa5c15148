"""Fixture for a small index with a history and its journal."""

from collections.abc import Iterator

import pytest

from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.journal.written import journaled_index
from pypi_assets_tests.service.published import Published


@pytest.fixture(scope="session")
def journaled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Published]:
    """Yield a published index with its journal. Tests do not change it."""
    folder = tmp_path_factory.mktemp("journaled")
    with pytest.MonkeyPatch.context() as environment, journaled_index(folder) as index:
        clear_settings(environment)
        yield index
