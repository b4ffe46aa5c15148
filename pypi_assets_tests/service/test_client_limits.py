"""Places and turns that clients share."""

import threading
from contextlib import ExitStack

import pytest

from pypi_assets.service.client_limits import Places, client_of
from pypi_assets.service.problems import ProblemError

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


def test_addresses_of_one_network_are_one_client(subtests: pytest.Subtests):
    for address, client in CLIENTS.items():
        with subtests.test(address=address):
            assert client_of(address) == client


class Waiting:
    """A thread that has a turn: it notes its name in `order`, and ends it once `end` is set."""

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


def test_a_newcomer_has_its_turn_before_the_rest_of_another_client():
    places, order, end = Places(8, 4), list[str](), threading.Event()
    threads: list[Waiting] = []
    for client in ("a", "a", "a", "b"):
        threads.append(Waiting(places, client, order, end))
        joined(places, len(threads))
    end.set()
    for one in threads:
        one.thread.join(60)
    assert order == ["a", "b", "a", "a"]


def joined(places: Places, count: int) -> None:
    """Return once so many have a place and a ticket."""
    with places._changed:
        assert places._changed.wait_for(
            lambda: sum(map(len, places._waiting.values())) + (places._present is not None) == count, 60
        )


def test_a_client_has_its_share_of_the_places_and_no_more():
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
    for one in threads:
        one.thread.join(60)
        assert one.status == 0
    with places.turn("a", wait_s=0, patience_s=0):
        assert waiting_count(places) == 1
    assert waiting_count(places) == 0
