from pypi_assets.service.response_cache import ResponseCache, Target
from pypi_assets.service.responses import Answer, Lasting


def target(name: str) -> Target:
    return name.encode(), b"", ""


def immutable(body: bytes) -> Answer:
    return Answer(body, lasting=Lasting.IMMUTABLE)


def test_an_answer_that_never_changes_is_kept_by_its_target():
    cache, of_set, of_serial = ResponseCache(), Answer(b"1", set_id="one"), immutable(b"2")
    cache.keep(target("a"), of_set)
    cache.keep(target("b"), of_serial)
    assert cache.get(target("a")) is of_set
    assert cache.get(target("b")) is of_serial
    assert cache.get((b"a", b"", "text/html")) is None
    assert cache.get((b"a", b"limit=1", "")) is None
    cache.keep(target("a"), newer := Answer(b"3", set_id="two"))
    assert cache.get(target("a")) is newer
    assert len(cache) == 2


def test_an_answer_that_depends_on_more_is_not_kept():
    cache = ResponseCache()
    for answer in (
        Answer(b"1"),
        Answer(b"1", lasting=Lasting.REDIRECT),
        Answer(b"1", set_id="one", status=404),
        Answer(b"1" * 5_000_000, set_id="one"),
        Answer(b"1", set_id="one", varies=("Accept", "Origin")),
    ):
        cache.keep(target("a"), answer)
        assert cache.get(target("a")) is None
    cache.keep(target("a"), Answer(b"1", set_id="one", varies=("Accept",)))
    assert cache.get(target("a")) is not None


def test_memory_is_bounded_and_what_was_used_last_stays():
    cache = ResponseCache(most_bytes=100_000)
    for number in range(1_000):
        cache.keep(target(str(number)), immutable(b"x" * 1_000))
        cache.keep(target(str(number)), immutable(b"x" * 1_000))  # takes the place of the one before
        assert cache.get(target("0")) is not None
    held = [number for number in range(1_000) if cache.get(target(str(number)))]
    assert {0, 999} < set(held)
    assert 20 < len(held) == len(cache) < 30
