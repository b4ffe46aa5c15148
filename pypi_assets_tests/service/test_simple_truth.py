"""Installers resolve the same from our pages as from the index. This runs few pairs, `deploy/test_simple_truth.py`
many.
"""

from pathlib import Path

import pytest

from pypi_assets_tests.service.simple_truth import resolvable, resolve_pairs


@pytest.mark.nightly
def test_pip_and_uv_choose_the_same_pins_as_from_the_past_index(tmp_path: Path) -> None:
    with resolvable(tmp_path, 24, seed=3) as truth:
        seen = resolve_pairs(truth, 5, seed=3)
    assert seen.differing == []
    assert seen.origin_requests == 0
    assert seen.pins > 0
