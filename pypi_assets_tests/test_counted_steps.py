"""Work is counted: the same each time, and by how much it grows."""

from pypi_assets_tests.counted_steps import growth, steps_of


def add_up(count: int) -> int:
    return sum(number for number in range(count))


def add_up_pairs(count: int) -> int:
    return sum(number for number in range(count) for _ in range(count))


def test_the_same_work_takes_the_same_steps():
    assert steps_of(lambda: add_up(100)) == steps_of(lambda: add_up(100)) > 100


def test_linear_work_grows_with_the_size_and_other_work_faster():
    assert 3.5 < growth(add_up, 100) < 4.5
    assert growth(add_up_pairs, 100) > 12
