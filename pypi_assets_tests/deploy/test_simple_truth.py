"""60 random requirements by each installer, against the pages of a serial and against the index of then."""

from pathlib import Path

import pytest

from pypi_assets_tests.service.simple_truth import KINDS, resolvable, resolve_pairs

pytestmark = pytest.mark.deploy


@pytest.mark.nightly
def test_pip_and_uv_find_the_same_pins_as_by_the_index_of_then(tmp_path: Path) -> None:
    with resolvable(tmp_path, 300, seed=1) as truth:
        assert truth.index.files >= 300
        seen = resolve_pairs(truth, 60, seed=1)
    assert seen.differing == []
    assert seen.origin_requests == 0
    assert all(seen.resolved[kind] >= 15 for kind in KINDS)
