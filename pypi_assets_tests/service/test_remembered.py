from pypi_assets.service.answers import Answer
from pypi_assets.service.remembered import PinnedAnswers, Remembered, Target


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
    kept.keep("one", target("c"), Answer(b"1" * 3_000_000, set_id="one"), "route")
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


def test_answers_at_a_serial_are_remembered_within_bounds():
    kept, answer = PinnedAnswers(most_bytes=2_500_000), Answer(b"1" * 1_000_000)
    kept.keep(target("a"), answer)
    assert kept.get(target("a")) is answer
    assert kept.get((b"a", b"", "text/html")) is None
    kept.keep(target("b"), Answer(b"2" * 1_000_000))
    assert kept.get(target("a")) is None
    assert kept.get(target("b")) is not None


def test_answers_at_a_serial_that_are_too_long_or_depend_on_more_are_not_remembered():
    kept = PinnedAnswers()
    kept.keep(target("a"), Answer(b"1" * 5_000_000))
    kept.keep(target("b"), Answer(b"1", varies=("Accept", "Origin")))
    kept.keep(target("c"), Answer(b"1", varies=("Accept",)))
    assert [kept.get(target(name)) is not None for name in "abc"] == [False, False, True]
