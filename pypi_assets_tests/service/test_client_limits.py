"""Limits on the places, queue and searches that clients share."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from pypi_assets.questions.catalog_snapshot import CatalogSnapshot
from pypi_assets.service.answering import MOST_WALKS, counted_chunks, counted_walk, time_limit
from pypi_assets.service.client_limits import Places, client_of
from pypi_assets.service.problems import ProblemError
from pypi_assets_tests.service.published import Client
from pypi_assets_tests.small_catalog import SmallCatalog
from pypi_assets_tests.waiting import until

CLIENTS = {
    "192.0.2.1": "192.0.2.1",
    "::ffff:192.0.2.1": "192.0.2.1",
    "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::",
    "2001:db8:1:2::": "2001:db8:1:2::",
    "2001:db8:1:3::1": "2001:db8:1:3::",
    "fe80::1%eth0": "fe80::",
    "a socket": "a socket",
    "": "",
}


def test_addresses_of_one_network_count_as_one_client(subtests: pytest.Subtests):
    for address, client in CLIENTS.items():
        with subtests.test(address=address):
            assert client_of(address) == client


class Waiting:
    """A thread that takes a turn. It appends its name to `order` and ends its turn when `end` is set."""

    def __init__(self, places: Places, client: str, order: list[str], end: threading.Event) -> None:
        self.status = 0
        self._arguments = places, client, order, end
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        places, client, order, end = self._arguments
        try:
            with places.turn(client, wait_s=0, patience_s=60):
                order.append(client)
                end.wait(60)
        except ProblemError as error:
            self.status = error.problem.status


def waiting_count(places: Places) -> int:
    with places._changed:
        return places._taken.total()


def test_new_client_is_served_before_another_clients_backlog():
    places, order, end = Places(8, 4), list[str](), threading.Event()
    threads: list[Waiting] = []
    for client in ("a", "a", "a", "b"):
        threads.append(Waiting(places, client, order, end))
        joined(places, len(threads))
    end.set()
    for waiting in threads:
        waiting.thread.join(60)
    assert order == ["a", "b", "a", "a"]


def joined(places: Places, count: int) -> None:
    """Return as soon as `count` threads have a place and a ticket. None of them announces that it begins to wait."""

    def have_tickets() -> bool:
        with places._changed:
            return sum(map(len, places._waiting.values())) + (places._present is not None) == count

    until(have_tickets)


def test_client_gets_only_its_share_of_places():
    places = Places(3, 2)
    end = threading.Event()
    with ExitStack() as stack:
        stack.callback(end.set)
        threads = [Waiting(places, client, [], end) for client in ("a", "a")]
        joined(places, 2)
        for client, status in (("a", 429), ("b", 503)):
            with pytest.raises(ProblemError) as raised, places.turn(client, wait_s=0, patience_s=0):
                pass
            assert raised.value.problem.status == status
            assert ("Retry-After", "1") in raised.value.headers
        threads.append(Waiting(places, "b", [], end))
        joined(places, 3)
        with pytest.raises(ProblemError) as raised, places.turn("c", wait_s=0, patience_s=0):
            pass
        assert raised.value.problem.status == 503
    for waiting in threads:
        waiting.thread.join(60)
        assert waiting.status == 0
    with places.turn("a", wait_s=0, patience_s=0):
        assert waiting_count(places) == 1
    assert waiting_count(places) == 0


def chunks() -> Iterator[bytes]:
    yield b"one"
    yield b"two"


def test_open_streams_are_limited_until_they_close():
    walks = [counted_chunks(chunks()) for _ in range(MOST_WALKS + 1)]
    assert [next(walk) for walk in walks[:MOST_WALKS]] == [b"one"] * MOST_WALKS
    with pytest.raises(ProblemError) as raised:
        next(walks[-1])
    assert (raised.value.problem.status, raised.value.headers) == (503, (("Retry-After", "1"),))
    with pytest.raises(ProblemError), counted_walk():
        pass
    walks[0].close()
    assert list(counted_chunks(chunks())) == [b"one", b"two"]
    with counted_walk(), pytest.raises(ProblemError):
        next(counted_chunks(chunks()))
    walks[1].close()


def test_unstarted_or_failed_streams_do_not_count():
    unused = [counted_chunks(chunks()) for _ in range(MOST_WALKS + 1)]
    for _ in range(MOST_WALKS + 1):
        with pytest.raises(KeyError), counted_walk():
            raise KeyError
    assert [list(one) for one in unused] == [[b"one", b"two"]] * (MOST_WALKS + 1)


def test_search_ends_at_its_time_limit(small: SmallCatalog):
    small.add(1, "a", "1", "a-1.zip", requires_dist=("b",))
    timed = CatalogSnapshot(small.catalog, 1, limit=time_limit(60))
    assert (list(timed.requiring("b", "0")), timed.versions("a")) == (["a"], [("1", False)])
    assert [one and one.version for one in timed.newest(["a", "b"])] == ["1", None]
    late = CatalogSnapshot(small.catalog, 1, limit=time_limit(-1))
    for question in (
        late.check,
        lambda: late.requiring("a"),
        lambda: list(late.newest(["a"])),
        lambda: late.versions("a"),
    ):
        with pytest.raises(ProblemError) as raised:
            question()
        assert (raised.value.problem.status, raised.value.problem.type) == (503, "/docs#too-slow")


COMPLETED = [
    ("p", [("project", "pyyaml")]),
    ("py", [("project", "pyyaml")]),
    ("PyYAML", [("project", "pyyaml")]),
    ("import ya", [("import", "yaml")]),
    ("yaml.", [("project", "yaml-copy"), ("import", "yaml.nodes")]),
    ("yaml.no", [("import", "yaml.nodes")]),
    ("uvx de", [("command", "demo")]),
    ("pip install de", [("project", "demo")]),
    ("de", [("project", "demo"), ("import", "demo"), ("command", "demo")]),
    ("demo==1", []),
    ("nothing-like-it", []),
    ("", []),
    (".", []),
    ("a b", []),
    ("\0", []),
    ("\ud7ff\U0010ffff", []),
]


def test_prefix_is_completed(client: Client, subtests: pytest.Subtests) -> None:
    for text, expected in COMPLETED:
        with subtests.test(text=text):
            answer = client.get("/v1/completions", params={"q": text})
            if "\0" in text:
                assert answer.status_code == 400
                continue
            results = answer.json()["results"]
            assert [(result["kind"], result["name"]) for result in results] == expected
            assert all(client.get(result["page"]).status_code == 200 for result in results)


def test_completions_are_cached_within_bounds(client: Client) -> None:
    first, again = (client.get("/v1/completions?q=d") for _ in range(2))
    assert (first.headers["etag"], first.json()) == (again.headers["etag"], again.json())
    assert client.get("/v1/completions", params={"q": "x" * 201}).json()["parameter"] == "q"
    assert client.get("/v1/completions").json()["parameter"] == "q"
