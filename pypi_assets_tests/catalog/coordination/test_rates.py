"""A rate that several processes share: no process uses another's slot, and a pause applies to all processes."""

import math
import subprocess
import time
from itertools import chain

import pytest
from sqlalchemy import literal, select

from pypi_assets.catalog.coordination.rates import SharedRate
from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.tables import rates
from pypi_assets_tests.forked import ForkedProgram

SENDER = """
import sys, threading, time
from pypi_assets.catalog.database import open_catalog
from pypi_assets.catalog.coordination.rates import SharedRate

url, per_second, requests, threads = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
catalog = open_catalog(url)
rate = SharedRate(catalog, "requests", per_second)
print("ready", flush=True)
sys.stdin.readline()
sent = []

def send():
    for _ in range(requests // threads):
        rate.wait()
        sent.append(time.time())

senders = [threading.Thread(target=send) for _ in range(threads)]
for sender in senders:
    sender.start()
for sender in senders:
    sender.join()
print(*sent)
"""


def sent_by_processes(url: str, per_second: float, senders: list[tuple[int, int]]) -> list[list[float]]:
    """Return when each process sent its requests, in seconds after the start. `senders` holds requests and threads per
    process.
    """
    processes = [
        ForkedProgram(SENDER, url, per_second, requests, threads, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for requests, threads in senders
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    began = time.time()
    for process in processes:
        process.stdin.write("begin\n")
        process.stdin.flush()
    return [[float(sent) - began for sent in process.communicate(timeout=120)[0].split()] for process in processes]


@pytest.mark.nightly
def test_processes_share_one_rate(catalog: Catalog):
    url = catalog.engine.url.render_as_string(hide_password=False)
    sent = sent_by_processes(url, 160, [(120, 4), (120, 4), (20, 1)])
    assert [len(moments) for moments in sent] == [120, 120, 20]
    for number, moment in enumerate(sorted(chain(*sent))):
        assert moment >= (number - 160) / 160  # a burst of one second is allowed; a slow machine sends later


class Sleeps(list[float]):
    """Records how long each caller would sleep, without sleeping."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


def test_hold_stops_other_workers(catalog: Catalog):
    sleeps = Sleeps()
    one, other = (SharedRate(catalog, "requests", 1000, sleep=sleeps) for _ in range(2))
    one.hold(500)
    for rate in (one, other):
        rate.wait()
        assert 499 < sleeps[-1] < 501
    one.hold(0)
    one.wait()
    assert sleeps[-1] > 499  # a shorter pause does not end a longer one


def test_unlimited_rate_can_be_held(catalog: Catalog):
    sleeps = Sleeps()
    one, other = (SharedRate(catalog, "requests", math.inf, sleep=sleeps) for _ in range(2))
    for _ in range(5_000):
        one.wait()
    assert not sleeps
    other.hold(500)
    other.wait()
    assert 499 < sleeps[-1] < 501


def test_rates_of_different_names_are_independent(catalog: Catalog):
    sleeps = Sleeps()
    SharedRate(catalog, "changelog", 1).hold(500)
    SharedRate(catalog, "requests", 1000, sleep=sleeps).wait()
    assert not sleeps or sleeps[-1] < 1
    with catalog.read() as connection:
        assert set(connection.scalars(select(rates.c.name))) == {"changelog", "requests"}


@pytest.mark.parametrize("per_second", [0.5, 20.0])
def test_slots_are_spaced_by_the_rate(catalog: Catalog, monkeypatch: pytest.MonkeyPatch, per_second: float):
    now, due = 1_000.0, []
    monkeypatch.setattr(SharedRate, "_now", lambda _, __: literal(now))  # the database's clock stands still as well
    rate = SharedRate(
        catalog, "requests", per_second, clock=lambda: now, sleep=lambda seconds: due.append(now + seconds), burst_s=0
    )
    for _ in range(100):
        rate.wait()
    assert max(due) - min(due) == pytest.approx((len(due) - 1) / per_second)
