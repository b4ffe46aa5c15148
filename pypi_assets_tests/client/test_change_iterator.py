"""Changes are the same records from a service, a home and a storage, from any cursor."""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, date, datetime
from typing import Any

import pytest

import pypi_assets
from pypi_assets.client import Client, LocationError, ParameterError, ServiceError
from pypi_assets.client.change_iterator import filters_of
from pypi_assets.errors import ExpectedError
from pypi_assets.journal.filters import RecordFilter
from pypi_assets.journal.record_reader import Journal
from pypi_assets_tests.journal.written import records_of
from pypi_assets_tests.service import published as served
from pypi_assets_tests.service.conftest import journaled as journaled
from pypi_assets_tests.service.conftest import journaled_client as journaled_client
from pypi_assets_tests.service.published import Published

FILTERS: list[dict[str, Any]] = [
    {},
    {"project": "PyYAML"},
    {"project": ["PyYAML", "gone"], "kind": "file-added"},
    {"stream": "index"},
    {"module": "yaml.nodes"},
    {"gained": ("modules", "start-up")},
    {"project": "nothing"},
]


@pytest.fixture
def clients(journaled: Published, journaled_client: served.Client) -> Iterator[dict[str, Client]]:
    """Yield a client of each kind of location, by kind."""
    locations = {"http": journaled_client.url, "home": journaled.home, "storage": journaled.home / "storage"}
    with ExitStack() as stack:
        yield {kind: stack.enter_context(pypi_assets.connect(one)) for kind, one in locations.items()}


def records(journaled: Published, wanted: RecordFilter) -> list[dict[str, Any]]:
    """Return the matching records, with times as text."""
    matching = [record for record in records_of(Journal(journaled.storage)) if wanted.wants(record)]
    return [
        {**one, "time": one["at"] and f"{datetime.fromtimestamp(one['at'], UTC):%Y-%m-%dT%H:%M:%SZ}"}
        for one in matching
    ]


def test_matching_changes_are_complete_and_ordered(
    clients: dict[str, Client], journaled: Published, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    for most in (1, 3, 1_000):
        for module in (pypi_assets.client.http_source, pypi_assets.client.local_sources):
            monkeypatch.setattr(module, "MOST_PER_BATCH", most)
        for filters in FILTERS:
            expected = records(journaled, RecordFilter.of_fields(filters_of(filters)))
            for kind, client in clients.items():
                with subtests.test(kind=kind, most=most, filters=str(filters)):
                    changes = client.changes(**filters)
                    assert list(changes) == expected
                    assert changes.through == journaled.index.serial
                    assert changes.cursor is not None
                    assert list(client.changes(changes.cursor, **filters)) == []


def test_other_client_continues_after_each_change(clients: dict[str, Client], journaled: Published) -> None:
    expected = records(journaled, RecordFilter.parse())
    for first, second in (("http", "storage"), ("home", "http")):
        for count in (1, len(expected) // 2, len(expected)):
            begun = clients[first].changes()
            assert begun.cursor is None
            read = [next(begun) for _ in range(count)]
            assert read + list(clients[second].changes(begun.cursor)) == expected


def test_changes_begin_at_a_serial_a_time_or_now(clients: dict[str, Client], journaled: Published) -> None:
    expected = records(journaled, RecordFilter.parse())
    for kind, client in clients.items():
        assert list(client.changes(7)) == [one for one in expected if one["serial"] > 7]
        assert list(client.changes("now")) == []
        if kind != "storage":  # a storage has a single serial and knows no times
            assert next(client.at(12).changes(7))["serial"] == 8
            days = (date(2026, 3, 5), datetime(2026, 3, 5, tzinfo=UTC), "2026-03-05")
            of_days = [list(client.changes(day)) for day in days]
            assert of_days[0] == of_days[1] == of_days[2]
            assert 0 < len(of_days[0]) < len(expected)


def test_invalid_start_or_filter_is_an_error(clients: dict[str, Client], subtests: pytest.Subtests) -> None:
    wrong: list[tuple[Any, dict[str, Any]]] = [
        ("no cursor!", {}), ("2999-01-01", {}), (None, {"kind": "none"}), (None, {"stream": ["index", "river"]}),
        (None, {"gained": "weight"}), (None, {"project": "x" * 1_001}),
    ]  # fmt: skip
    for kind, client in clients.items():
        for since, filters in wrong:
            with subtests.test(kind=kind, since=since, filters=filters), pytest.raises(ExpectedError) as caught:
                client.changes(since, **filters)
            parameter = getattr(caught.value, "parameter", getattr(caught.value, "name", None))
            if filters:
                assert parameter == next(iter(filters))
                assert isinstance(caught.value, ServiceError if kind == "http" else ParameterError)


def test_answer_of_another_program_names_the_location(monkeypatch: pytest.MonkeyPatch) -> None:
    client = pypi_assets.connect("http://127.0.0.1:9")
    for content in ({}, [], {"changes": [], "cursor": "?", "through": 1}, {"changes": [], "cursor": 1, "through": 1}):
        monkeypatch.setattr(type(client._source), "_request", lambda *_arguments, content=content, **_query: content)
        with pytest.raises(LocationError):
            client.changes()
