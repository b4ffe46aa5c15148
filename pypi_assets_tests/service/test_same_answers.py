"""The response cache changes no answer, for any requests in any order, while versions change."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette

from pypi_assets.service.app import create_app
from pypi_assets.service.response_cache import ResponseCache
from pypi_assets.service.service import Service
from pypi_assets_tests.examples import examples
from pypi_assets_tests.service.in_process import Received, Sent, answers
from pypi_assets_tests.service.published import Published

PATHS = (
    *("v1/modules/yaml", "v1/modules/yaml?limit=1", "v1/modules/y?prefix=1", "v1/modules/demo.new", "v1/modules/yamll"),
    *("v1/owners/yaml", "v1/owners/demo.new", "v1/commands/demo", "v1/hashes/" + "ab" * 32),
    *("v1/projects/demo", "v1/projects/none", "v1/projects/demo/2.0", "v1/projects/demo/history?all=1"),
    *("v1/projects/pyyaml/dependents?excludes=6.0", "simple/gone/", "simple/Demo/", "simple/demo"),
    *("project/demo/", "project/demo.json", "import/yaml.json", "search.json?q=yamll", "index.json"),
    *("static/style.css", "nothing"),
)
NEGOTIATED = ("simple/demo/", "simple/pyyaml/", "v1/projects/pyyaml/dependents")
"""Paths whose answers depend on the header Accept."""
BODIES = {
    "v1/owners": ({"imports": ["yaml"]}, {"imports": ["demo.new", "yaml"]}, {"imports": []}),
    "v1/purls": ({"purls": ["pkg:pypi/demo@1.0"]}, {"purls": ["pkg:pypi/pyyaml"]}, {"purls": ["none"]}),
    "v1/hashes": ({"hashes": ["ab" * 32]}, {"hashes": ["no hash"]}),
}
PINS = ("", "at/{serial}.{serial}/", "at/12.12/")
OTHER_PINS = ("at/12/", "at/12.13/", "at/2026-03-03/", "at/12.12,safe/", "at/0/")
HEADERS = {
    "Accept": ("*/*", "text/html", "application/json", "application/x-ndjson", "application/vnd.pypi.simple.v1+json"),
    "Accept-Encoding": ("gzip", "zstd", "identity", "gzip;q=0.5, zstd;q=0.1"),
    "If-Modified-Since": ("Tue, 03 Mar 2026 00:00:00 GMT",),
    "If-None-Match": ('"none"',),
}


@st.composite
def batches(draw: st.DrawFn, serial: int) -> list[list[Sent]]:
    """Draw requests that are sent concurrently, several times.

    There are few targets, so that some requests repeat and others differ in details.
    """
    pins = st.sampled_from(PINS) | st.sampled_from(PINS) | st.sampled_from(OTHER_PINS)
    paths = st.sampled_from(PATHS) | st.sampled_from(NEGOTIATED) | st.sampled_from(tuple(BODIES))
    targets = draw(st.lists(st.tuples(pins.map(lambda pin: pin.format(serial=serial)), paths), min_size=1, max_size=2))
    return draw(st.lists(st.lists(requests(targets), min_size=3, max_size=8), min_size=2, max_size=4))


@st.composite
def requests(draw: st.DrawFn, targets: list[tuple[str, str]]) -> Sent:
    """Draw a request for one of these targets, mostly with the target's own method."""
    pin, path = draw(st.sampled_from(targets))
    chosen = {name: draw(st.sampled_from((None, *values))) for name, values in HEADERS.items()}
    headers = tuple((name, value) for name, value in chosen.items() if value is not None)
    usual = "POST" if path in BODIES else "GET"
    method = draw(st.sampled_from((usual, usual, usual, "GET", "HEAD", "POST")))
    body = json.dumps(draw(st.sampled_from(BODIES.get(path, ({},))))).encode() if method == "POST" else b""
    return Sent(f"/{pin}{path}", method, headers, body)


@contextmanager
def both(published: Published) -> Iterator[tuple[Service, Service]]:
    """Yield a service, and another service without a cache."""
    with published.service() as service, published.service() as forgetful:
        forgetful.cache = ResponseCache(0)
        yield service, forgetful


def compare(app: Starlette, truth: Starlette, drawn: list[Sent]) -> list[Received]:
    """Send requests concurrently to one application and serially to the other. Assert that the answers are equal."""

    async def run() -> tuple[list[Received], list[Received]]:
        return await answers(app, drawn), [answer for sent in drawn for answer in await answers(truth, [sent])]

    found, expected = asyncio.run(run())
    for sent, one, other in zip(drawn, found, expected, strict=True):
        assert (one.status, one.body) == (other.status, other.body), sent
        assert one.headers == other.headers, sent
    return found


@pytest.mark.nightly
def test_cache_changes_no_answer(published: Published) -> None:
    with both(published) as (service, forgetful):
        app, truth = create_app(service), create_app(forgetful)
        serial = published.index.serial

        @settings(max_examples=examples(100))
        @given(batches(serial))
        @example([[Sent(f"/{pin}v1/projects/demo")] * 3 for pin in ("", f"at/{serial}.{serial}/")])  # both are cached
        def check(drawn: list[list[Sent]]) -> None:
            for batch in drawn:
                compare(app, truth, batch)

        check()
        for pin in ("", f"at/{serial}.{serial}/"):
            assert service.cache.get((f"/{pin}v1/projects/demo".encode(), b"", "")) is not None
        assert len(forgetful.cache) == 0


@pytest.mark.nightly
def test_immutable_answers_stay_and_new_state_is_answered_immediately(changing: Published) -> None:
    """Hints change too: the candidates for a name grow with the index."""
    first = changing.index.serial
    pinned = [f"/at/{at}.{at}/{path}" for at in (12, first) for path in (*PATHS, *NEGOTIATED)]
    drawn = [Sent(path) for path in (*pinned, *(f"/{one}" for one in PATHS))]
    immutable: dict[Sent, Received] = {}
    with both(changing) as (service, forgetful):
        app, truth = create_app(service), create_app(forgetful)
        for number in range(3):
            for sent, received in zip(drawn, compare(app, truth, drawn * 2), strict=False):
                known = immutable.get(sent)
                if known is not None:
                    assert (received.status, received.body) == (known.status, known.body), sent
                if "immutable" in received.headers.get("cache-control", ""):
                    immutable[sent] = received
            files = {"yaml/__init__.py": "", f"yaml{number}l/__init__.py": "", "demo/__init__.py": ""}
            changing.add("wheel", f"yamll-{number}", "1.0", files=files, requires_dist=["PyYAML", "demo"])
            changing.add("wheel", "demo", f"3.{number}", requires_dist=["PyYAML"])
            changing.publish()
            for one in (service, forgetful):
                one.follow()
    assert {sent.target for sent in immutable} > {"/at/12.12/v1/modules/yaml", "/at/12.12/simple/demo/"}
