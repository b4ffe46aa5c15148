"""Installers find the same pins for 60 random requirements from pages at a serial and from the index of that time."""

from pathlib import Path

import pytest

from pypi_assets_tests.service.simple_truth import KINDS, resolvable, resolve_pairs

pytestmark = pytest.mark.deploy


@pytest.mark.nightly
def test_installers_find_the_same_pins_as_from_the_index_of_that_time(tmp_path: Path) -> None:
    with resolvable(tmp_path, 300, seed=1) as truth:
        assert truth.index.files >= 300
        seen = resolve_pairs(truth, 60, seed=1)
    assert seen.differing == []
    assert seen.origin_requests == 0
    assert all(seen.resolved[kind] >= 15 for kind in KINDS)
