"""Values of a setup.py, and what stands for those that are unknown."""

import pytest

from pypi_assets.distributions.setup_values import (
    UNKNOWN,
    FindPackages,
    Imported,
    as_text,
    is_encodable,
    is_same_scalar,
    is_texts,
    spoil,
)


def test_a_spoilt_container_is_unknown_for_all_who_hold_it():
    listed, table = ["a"], {"k": "a"}
    others = (listed, table)
    spoil(listed)
    spoil(table)
    spoil("a text stays as it is")
    assert others == ([UNKNOWN], {UNKNOWN: UNKNOWN})


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a", "a", True),
        (1, True, False),
        (None, None, True),
        (FindPackages("src"), FindPackages("src"), True),
        (Imported("a"), Imported("b"), False),
        (["a"], ["a"], False),
        (UNKNOWN, UNKNOWN, False),
    ],
)
def test_only_known_scalars_of_one_type_are_the_same(one, other, expected):
    assert is_same_scalar(one, other) is expected


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (1, "1"), (True, "True"), (None, UNKNOWN), (["a"], UNKNOWN), (1 << 62, UNKNOWN), (1.5, UNKNOWN)],
)
def test_texts_of_values(value, text):
    assert as_text(value) == text


def test_half_of_a_surrogate_pair_is_no_text_of_a_file():
    assert is_encodable("caf\xe9 \U0001f600")
    assert not is_encodable("\ud800")


def test_texts_are_lists_and_tuples_of_nothing_else():
    assert is_texts([])
    assert is_texts(("a", "b"))
    assert not is_texts(["a", 1])
    assert not is_texts("ab")
