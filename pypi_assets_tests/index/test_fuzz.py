"""Brief fuzzing of each parser of an index's answers. `make fuzz` runs longer."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets_tests.distributions.fuzz_targets import Target, mutate_bytes
from pypi_assets_tests.examples import examples
from pypi_assets_tests.fuzz import fuzz_apart
from pypi_assets_tests.index.fuzz_targets import KEPT, TARGETS

BY_NAME = {target.name: target for target in TARGETS}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_seeds_pass(target: Target) -> None:
    for seed in target.seeds():
        target.check(seed)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@settings(max_examples=examples(60))
@given(number=st.integers(0, 2**32 - 1))
def test_mutated_inputs_pass(target: Target, number: int) -> None:
    random = Random(number)
    content = random.choice(target.seeds())
    for _ in range(4):
        content = target.mutate(content, random, mutate_bytes)
        target.check(content)


@pytest.mark.nightly
def test_fuzzing_in_a_separate_process_finds_nothing(tmp_path: Path) -> None:
    """This includes the native parsers."""
    assert fuzz_apart(["list of projects"], tmp_path, 1 / 60, seed=7) == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "content"), KEPT)
def test_earlier_findings_pass(name: str, content: bytes) -> None:
    BY_NAME[name].check(content)
