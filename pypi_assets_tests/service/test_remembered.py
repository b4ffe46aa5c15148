from pypi_assets.service.answers import Answer
from pypi_assets.service.remembered import Remembered, Target


def target(name: str) -> Target:
    return name.encode(), b"", ""


def test_answers_are_remembered_as_long_as_their_set_is_the_present_one():
    kept, answer = Remembered(), Answer(b"1", set_id="one")
    kept.keep("one", target("a"), answer, "route")
    assert kept.get("one", target("a")) == (answer, "route")
    assert kept.get("one", target("b")) is None
    assert kept.get("two", target("a")) is None
    kept.keep("two", target("b"), Answer(b"2", set_id="one"), "route")  # of the set before
    assert kept.get("two", target("b")) is None
    kept.keep("two", target("b"), Answer(b"2", set_id="two"), "route")
    assert kept.get("two", target("b")) is not None
    assert kept.get("one", target("a")) is None


def test_what_depends_on_more_is_not_remembered():
    kept = Remembered()
    kept.keep("one", target("a"), Answer(b"1"), "route")
    kept.keep("one", target("b"), Answer(b"1", set_id="one", status=404), "route")
    kept.keep("one", target("c"), Answer(b"1" * 1_000_000, set_id="one"), "route")
    assert not any(kept.get("one", target(name)) for name in "abc")


def test_memory_is_bounded_and_what_was_used_last_stays():
    kept = Remembered(most_bytes=100_000)
    for number in range(1_000):
        kept.keep("one", target(str(number)), Answer(b"x" * 1_000, set_id="one"), "route")
        assert kept.get("one", target("0")) is not None
    held = [number for number in range(1_000) if kept.get("one", target(str(number)))]
    assert 0 in held
    assert 999 in held
    assert len(held) < 30
