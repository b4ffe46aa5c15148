"""Fuzzes each target briefly. `python -m pypi_assets_tests.fuzz` does it for longer."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets_tests.distributions.fuzz_targets import KEPT, TARGETS, Target, mutate_bytes
from pypi_assets_tests.examples import examples

BY_NAME = {target.name: target for target in TARGETS}
ROUNDS = 4


@pytest.fixture(scope="module", params=TARGETS, ids=lambda target: target.name)
def target_and_seeds(request):
    return request.param, request.param.seeds()


@pytest.mark.nightly
def test_seeds_pass_their_checks(target_and_seeds: tuple[Target, list[bytes]]):
    target, seeds = target_and_seeds
    assert seeds
    for seed in seeds:
        target.check(seed)


@pytest.mark.nightly
@settings(max_examples=examples(40))
@given(number=st.integers(0, 2**32 - 1))
def test_mutated_inputs_pass_their_checks(target_and_seeds: tuple[Target, list[bytes]], number: int):
    target, seeds = target_and_seeds
    random = Random(number)
    content = random.choice(seeds)
    for _ in range(ROUNDS):
        content = target.mutate(content, random, mutate_bytes)
        target.check(content)


def test_inputs_that_once_failed(subtests: pytest.Subtests):
    for name, content in KEPT:
        with subtests.test(name=name, content=content):
            BY_NAME[name].check(content)
