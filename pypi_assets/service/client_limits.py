"""Fair sharing of scarce resources among clients: turns at the resolver, and memory for request bodies.

A client is an IPv4 address or an IPv6 network of the size that providers assign to one customer.
"""

import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from pypi_assets.service.problems import ProblemError

_MOST_BODIES, _MOST_BODIES_OF_A_CLIENT = 16, 4
_NETWORK_BITS = 64
"""The prefix length of an IPv6 network that belongs to one customer."""


@lru_cache(maxsize=1_024)
def client_of(address: str) -> str:
    """Return the client that an address belongs to. An unparsable address is a client of its own.

    >>> client_of("2001:db8:1:2::5"), client_of("::ffff:192.0.2.1")
    ('2001:db8:1:2::', '192.0.2.1')
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(IPv6Address(int(parsed) >> _NETWORK_BITS << _NETWORK_BITS))


class Places:
    """A waiting room with `most` places, at most `most_of_client` for one client.

    Clients in the room take turns. So a newcomer waits for at most one turn of each other client, not for all of their
    requests.

    >>> with places.turn("192.0.2.1", wait_s=0, patience_s=20): ...
    """

    def __init__(self, most: int, most_of_client: int) -> None:
        self._most, self._most_of_client = most, most_of_client
        self._changed = threading.Condition()
        self._taken: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[object]] = OrderedDict()
        self._present: object | None = None

    @contextmanager
    def turn(self, client: str, wait_s: float, patience_s: float) -> Iterator[None]:
        """Hold a turn until the end of the block.

        Waits up to `wait_s` for a place, then up to `patience_s` for the turn. Raises a ProblemError: 429 if the client
        has all the places it may have, 503 if the room is full or the turn does not come in time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: self._has_room(client), wait_s):
                raise self._full(client)
            self._taken[client] += 1
        try:
            self._await_turn(client, patience_s)
            try:
                yield
            finally:
                with self._changed:
                    self._present = None
                    if client in self._waiting:
                        self._waiting.move_to_end(client)
                    self._begin_next()
        finally:
            with self._changed:
                self._taken[client] -= 1
                self._taken += Counter()  # drop the clients with no places
                self._changed.notify_all()

    def _has_room(self, client: str) -> bool:
        return self._taken.total() < self._most and self._taken[client] < self._most_of_client

    def _full(self, client: str) -> ProblemError:
        retry = [("Retry-After", "1")]
        if self._taken[client] >= self._most_of_client:
            detail = f"{self._most_of_client} slow requests of this client are running already"
            return ProblemError(429, "busy", detail, headers=retry)
        return ProblemError(503, "busy", f"{self._most} slow requests are running already", headers=retry)

    def _await_turn(self, client: str, patience_s: float) -> None:
        ticket = object()
        with self._changed:
            self._waiting.setdefault(client, deque()).append(ticket)
            self._begin_next()
            if not self._changed.wait_for(lambda: self._present is ticket, patience_s):
                self._waiting[client].remove(ticket)
                if not self._waiting[client]:
                    del self._waiting[client]
                detail = f"the requests of other clients took {patience_s:g} s"
                raise ProblemError(503, "busy", detail, headers=[("Retry-After", "1")])

    def _begin_next(self) -> None:
        """Give the turn, if it is free, to the client that has waited longest since its last turn."""
        if self._present is None and self._waiting:
            client, tickets = next(iter(self._waiting.items()))
            self._present = tickets.popleft()
            if not tickets:
                del self._waiting[client]
            self._changed.notify_all()


class BodyRoom:
    """A limit on the memory for request bodies in a process: the largest size times `_MOST_BODIES`.

    One client may use the part of `_MOST_BODIES_OF_A_CLIENT` bodies.
    """

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    @contextmanager
    def held_by(self, client: str, most_body_bytes: int) -> Iterator[Callable[[int], None]]:
        """Yield a function that counts further bytes of the client's body. They are released at the end of the block.

        It raises a ProblemError if a limit is exceeded: 429 if it is the client's limit, else 503.
        """
        size = 0

        def hold(more: int) -> None:
            nonlocal size
            size += more
            self._held[client] += more
            headers = [("Retry-After", "1"), ("Connection", "close")]
            if self._held[client] > _MOST_BODIES_OF_A_CLIENT * most_body_bytes:
                raise ProblemError(429, "busy", "this client sends too many bytes at once", headers=headers)
            if self._held.total() > _MOST_BODIES * most_body_bytes:
                raise ProblemError(503, "busy", "too many bytes are being received at once", headers=headers)

        try:
            yield hold
        finally:
            self._held[client] -= size
            if not self._held[client]:
                del self._held[client]
