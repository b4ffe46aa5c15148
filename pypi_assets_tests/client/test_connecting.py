"""All clients answer as the commands do, at the newest serial and at earlier ones."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
import requests

import pypi_assets
from pypi_assets.catalog.database import NoCatalogError
from pypi_assets.client import (
    BadParameterError,
    Client,
    ConflictError,
    CursorError,
    InexactMomentError,
    LocationError,
    NotExactError,
    NotFoundError,
    OtherMomentError,
    OtherSnapshotError,
    ParameterError,
    ResultIterator,
    ServiceError,
    UnreachableError,
)
from pypi_assets.errors import ExpectedError
from pypi_assets.questions.names import DEFAULT_PLATFORM, DEFAULT_PYTHON
from pypi_assets.questions.question import CombinationError, Question, all_questions
from pypi_assets.service.problems import TITLES
from pypi_assets.storage.store import StorageError
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.environment import clear_settings
from pypi_assets_tests.examples import examples
from pypi_assets_tests.naming import naming
from pypi_assets_tests.questions.test_snapshots import names_of, subject, variants
from pypi_assets_tests.service.published import Published
from pypi_assets_tests.service.test_server import served

FURTHER_NAMES = {
    "module": ["yaml", "yaml.nodes", "yamll"],
    "project": ["PyYAML", "demo==2.0", "other.app", "gone"],
    "dependents": ["pyyaml", "demo"],
    "page": ["demo", "gone"],
}
"""Names of the published index, next to those of `NAMES`."""
EARLIER = 12
ClientAnswer = tuple[list[dict[str, Any]], int, int | None, int | None]


@pytest.fixture
def commands(published: Published, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """Return the commands over the published index."""
    clear_settings(monkeypatch)
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(published.home))
    return Commands(published.home)


def drawn(question: Question[Any], published: Published, at: int | None) -> list[tuple[str, dict[str, object]]]:
    """Return a sample of possible questions, the same in each run of the tests."""
    questions = list(asked(question, published))
    return Random(f"{question.name} {at}").sample(questions, min(len(questions), examples(30)))


def asked(question: Question[Any], published: Published) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield names to query, each with values of the other parameters."""
    names = [*names_of(question), *FURTHER_NAMES.get(question.name, ())]
    if question.name == "hash":
        names += [stored["sha256"] for stored in pypi_assets.connect(published.home).page("demo")]
    for values in variants(question):
        for name in ["0" if question.name == "hash" else "d", "y"] if values.get("prefix") else names:
            yield name.encode(errors="replace").decode(), values


def answer_or_error(
    client: Client, question: Question[Any], name: str, values: dict[str, object]
) -> ClientAnswer | type[ExpectedError]:
    """Return the answer of a client, or the error's type."""
    try:
        results = getattr(client, question.name)(**subject(question, name), **values)
        rows = json.loads(json.dumps(list(results)))
    except ExpectedError as error:
        return type(error)
    return rows, results.serial, results.epoch, results.followed_projects


def printed(commands: Commands, question: Question[Any], name: str, values: dict[str, object], at: int | None) -> Any:
    """Return the results that the command prints, or None if it fails."""
    moment = [] if at is None else ["--at", at]
    if question.has_body:
        return [printed_of_many(commands, question, name.split(), values, moment)]
    flags = [f"--{flag}" for flag, value in values.items() if value is True]
    options = [
        part for name in ("depth", "version", "excludes") if name in values for part in (f"--{name}", values[name])
    ]
    result = commands.run(*question.command.split(), *flags, *options, *moment, "--json", "--", name)
    return json.loads(result.stdout) if result.exit_code == 0 else None


def printed_of_many(
    commands: Commands, question: Question[Any], names: list[str], values: dict[str, object], moment: list[Any]
) -> Any:
    """Return the result of a command that reads several names or a file of names."""
    if question.name == "resolve":
        flags = {"prereleases": "--pre", "only_binary": "--only-binary"}
        given = [option for name, option in flags.items() if values.get(name)]
        where = ["--python", DEFAULT_PYTHON, "--platform", DEFAULT_PLATFORM]
        shown = json.loads(commands.run("resolve", *names, *given, *where, *moment, "--json").stdout)
        assert shown.pop("ignored_options") == []
        return shown
    lock = Path(os.environ["PYPI_ASSETS_HOME"]) / "requirements.txt"
    lock.write_text("\n".join(names))
    shown = json.loads(commands.run("lookup", "collisions", lock, *moment, "--json").stdout)
    assert (shown.pop("lock"), isinstance(shown.pop("serial"), int)) == (lock.name, True)
    return json.loads(json.dumps(shown).replace(f"{lock}:", "pin "))


@pytest.mark.nightly
def test_every_client_answers_as_the_commands_do(
    clients: dict[str, Client], commands: Commands, published: Published, subtests: pytest.Subtests
) -> None:
    counted = 0
    for question in all_questions():
        for at in (None, EARLIER):
            of_moment = {
                kind: client if at is None else client.at(at)
                for kind, client in clients.items()
                if at is None or kind in {"http", "home"}
            }
            with subtests.test(question=question.name, at=at):
                for name, values in drawn(question, published, at):
                    found = {kind: answer_or_error(one, question, name, values) for kind, one in of_moment.items()}
                    expected, home = printed(commands, question, name, values, at), found.pop("home")
                    if isinstance(home, type):
                        assert expected is None, (name, values)
                    else:
                        context = {} if home[2] is None else {"epoch": home[2]}
                        assert [{**context, **row} for row in home[0]] == expected, (name, values)
                        counted += bool(expected)
                    for kind, other in found.items():
                        if not is_expected_refusal(other, question, kind, name, values):
                            assert other == home or is_as_of_home(other, home), (kind, name, values)
    assert counted > 20


def is_as_of_home(other: ClientAnswer | type[ExpectedError], home: ClientAnswer | type[ExpectedError]) -> bool:
    """Check whether a service answers as a home does.

    A service reports parameters that do not fit together as a conflict. An empty newest answer has no epoch.
    """
    if not isinstance(other, type) and not isinstance(home, type):
        return not home[0] and other[:2] == home[:2]
    if not isinstance(other, type) or not isinstance(home, type):
        return False
    return issubclass(other, home) or (home is CombinationError and other is ConflictError)


def is_expected_refusal(
    found: ClientAnswer | type[ExpectedError], question: Question[Any], kind: str, name: str, values: dict[str, object]
) -> bool:
    """Check whether the answer is the error that this client must give if only a home can answer."""
    if kind == "http" and "\0" in name and question.path is not None:
        return found is ServiceError
    if kind == "http" and question.path is None:
        return found is OtherSnapshotError
    if not isinstance(found, type) or not issubclass(found, OtherSnapshotError):
        return False
    return question.needs_catalog(question.given(**subject(question, name), **values))


def test_list_can_be_continued_in_any_client(clients: dict[str, Client], subtests: pytest.Subtests) -> None:
    whole = list(clients["home"].module("y", prefix=True))
    assert len(whole) == 3
    for first, second in (("http", "storage"), ("storage", "http"), ("s3", "home"), ("home", "s3")):
        for count in range(1, len(whole) + 1):
            for page_size in (None, 1, 2):
                with subtests.test(first=first, second=second, count=count, page_size=page_size):
                    results = clients[first].module("y", prefix=True, page_size=page_size)
                    assert results.cursor is None
                    begun = [next(results) for _ in range(count)]
                    rest = clients[second].module("y", prefix=True, page_size=page_size, cursor=results.cursor)
                    assert begun + list(rest) == whole


def test_list_at_a_serial_can_be_continued_in_another_client(clients: dict[str, Client]) -> None:
    for first, second in (("http", "home"), ("home", "http")):
        results = clients[first].at(EARLIER).module("yaml", page_size=1)
        begun = [next(results)]
        rest = list(clients[second].at(EARLIER).module("yaml", page_size=1, cursor=results.cursor))
        assert [one["project"] for one in begun + rest] == ["PyYAML", "yaml-copy"]


def test_catalog_only_list_can_be_continued_in_another_client(clients: dict[str, Client]) -> None:
    whole = list(clients["home"].files("demo"))
    assert len(whole) > 2
    for first, second in (("http", "home"), ("home", "http")):
        results = clients[first].files("demo", page_size=1)
        begun = [next(results)]
        assert begun + list(clients[second].files("demo", page_size=1, cursor=results.cursor)) == whole


def test_search_of_the_whole_index_is_one_list(clients: dict[str, Client], subtests: pytest.Subtests) -> None:
    for kind, client in clients.items():
        with subtests.test(kind=kind):
            whole = [dependent["normalized"] for dependent in client.dependents("pyyaml", transitive=True)]
            assert whole == ["demo", "other-app"]
            if kind != "http":  # its stream has no pages
                cut = client.dependents("pyyaml", transitive=True, page_size=1)
                assert [one["normalized"] for one in cut] == whole
                assert cut.cursor is None


class RecordedSession(requests.Session):
    """A session that keeps its responses."""

    def __init__(self) -> None:
        super().__init__()
        self.responses: list[requests.Response] = []

    def get(self, url: str | bytes, **options: Any) -> requests.Response:
        self.responses.append(super().get(url, **options))
        return self.responses[-1]


def test_unread_results_hold_no_connection(clients: dict[str, Client], published: Published) -> None:
    session = RecordedSession()
    with served(published, 1) as (url, _), pypi_assets.connect(url, session=session) as client:
        for let_go in (ResultIterator.close, lambda results: results.__exit__(None, None, None), None):
            results = client.dependents("pyyaml", transitive=True)
            assert not session.responses[-1].raw.closed
            if let_go is not None:
                let_go(results)
                assert list(results) == []
            del results
            assert session.responses[-1].raw.closed
        begun = client.dependents("pyyaml", transitive=True)
        next(begun)
        begun.close()
        assert session.responses[-1].raw.closed
    for kind, other in clients.items():
        with other.module("y", prefix=True, page_size=1) as cut:
            assert next(cut)["project"], kind
        assert list(cut) == [], kind


def test_version_named_like_a_route_is_an_error(clients: dict[str, Client]) -> None:
    assert list(clients["storage"].release("demo", "dependents")) == []
    routes = [question.path for question in all_questions() if question.path is not None]
    steps = [route.rpartition("/")[2] for route in routes if route.startswith("/v1/projects/{project}/")]
    assert len(steps) > 3
    for step in steps:
        if step != "{version}":
            with pytest.raises(ParameterError):
                clients["http"].release("demo", step)
    assert list(clients["http"].release("demo", "nodependents")) == []


def test_page_size_is_between_one_and_a_maximum(clients: dict[str, Client], subtests: pytest.Subtests) -> None:
    for kind, client in clients.items():
        for page_size in (-1, 0, 10_001):
            with subtests.test(kind=kind, page_size=page_size), pytest.raises(ParameterError):
                client.module("yaml", page_size=page_size)


def test_empty_stream_has_hints(clients: dict[str, Client]) -> None:
    assert all(client.dependents("demoo").hints for kind, client in clients.items() if kind != "s3")


def test_invalid_cursor_is_an_error(clients: dict[str, Client], subtests: pytest.Subtests) -> None:
    of_other = clients["home"].module("yaml")
    next(of_other)
    gone = clients["home"].at(EARLIER).module("yaml")
    next(gone)
    for kind, client in clients.items():
        error = ServiceError if kind == "http" else CursorError
        for cursor in ("none", of_other.cursor, gone.cursor):
            with subtests.test(kind=kind, cursor=cursor), pytest.raises(error):
                client.module("demo", cursor=cursor)
        with subtests.test(kind=kind), pytest.raises(error):
            client.module("yaml", cursor=gone.cursor)


def test_at_accepts_a_serial_a_date_or_a_time(clients: dict[str, Client]) -> None:
    for kind in ("http", "home"):
        client = clients[kind]
        serial = client.at("2026-03-03").project("demo").serial if kind == "home" else None
        moments = (
            date(2026, 3, 3),
            datetime(2026, 3, 3, tzinfo=UTC),
            datetime(2026, 3, 3).astimezone(UTC),
            "2026-03-03T00:00:00Z",
        )
        serials = {client.at(moment).module("yaml").serial for moment in ("2026-03-03", *moments)}
        assert len(serials) == 1
        assert serial in {None, *serials}
        assert client.at(str(EARLIER)).module("yaml").serial == EARLIER
        assert client.at(EARLIER).at(EARLIER + 1).module("yaml").serial == EARLIER + 1


def test_clients_raise_a_typed_error_if_they_cannot_answer(clients: dict[str, Client]) -> None:
    http, home = clients["http"], clients["home"]
    for kind in ("storage", "s3"):
        with pytest.raises(OtherSnapshotError):
            clients[kind].at(EARLIER)
        with pytest.raises(OtherSnapshotError):
            clients[kind].hash("0" * 64, all=True)
    with pytest.raises(OtherMomentError) as other:
        http.at(EARLIER).command("demo")
    assert (other.value.status, other.value.parameter, other.value.kind) == (409, "at", "conflict")
    with pytest.raises(NotExactError) as exact:
        http.at(10**9).module("yaml")
    assert exact.value.first_serial is not None
    assert exact.value.request_id
    for client in (http, home):
        with pytest.raises(InexactMomentError):
            client.at(10**9).module("yaml")
    with pytest.raises(BadParameterError) as wrong:
        http.at("yesterday").module("yaml")
    assert wrong.value.parameter == "at"
    assert wrong.value.accepts
    with pytest.raises(ParameterError):
        home.at("yesterday")
    for client in clients.values():
        with pytest.raises(ParameterError) as beyond:
            client.module("")
        assert (beyond.value.name, beyond.value.value) == ("module", "")


def test_names_of_any_characters_are_looked_up(clients: dict[str, Client], subtests: pytest.Subtests) -> None:
    for name in ("größe", "a/b", "a%2Fb", "?x=1", "#", "a b", "...", "//"):
        with subtests.test(name=name):
            assert list(clients["http"].command(name)) == list(clients["storage"].command(name)) == []


def test_name_that_is_a_relative_path_is_rejected(clients: dict[str, Client]) -> None:
    for name in (".", ".."):
        with pytest.raises(ParameterError) as wrong:
            clients["http"].module(name)
        assert wrong.value.value == name


def test_answer_without_results_has_hints(clients: dict[str, Client]) -> None:
    hints = {kind: client.module("yamll").hints for kind, client in clients.items()}
    assert len(hints["home"]) == 1
    assert hints["http"] == hints["home"] == hints["storage"]
    assert all(client.module("yaml").hints == () for client in clients.values())


def test_results_convert_to_a_table(clients: dict[str, Client], published: Published) -> None:
    for client in clients.values():
        frame = client.module("y", prefix=True, page_size=2).frame()
        assert list(frame.columns) == ["module", "project", "versions"]
        assert frame["project"].tolist() == ["PyYAML", "yaml-copy", "PyYAML"]
        assert frame.attrs == {"serial": published.index.serial, "epoch": None}
        empty = client.module("none").frame()
        assert list(empty.columns) == list(frame.columns)
        assert empty.empty


def test_invalid_location_is_an_error(tmp_path: Path, published: Published) -> None:
    for location in (tmp_path / "none", "ftp://host/", "https://", "http://host/?q=1"):
        with pytest.raises((LocationError, StorageError)):
            pypi_assets.connect(location)
    with pypi_assets.connect("http://127.0.0.1:9/") as client, pytest.raises(UnreachableError) as unreachable:
        client.module("yaml")
    assert unreachable.value.url.startswith("http://127.0.0.1:9/")
    with (
        pypi_assets.connect(published.index.url) as client,
        pytest.raises(LocationError, match=naming(published.index.url)),
    ):
        client.module("yaml")
    with pypi_assets.connect(tmp_path) as client, pytest.raises(ExpectedError):
        client.module("yaml")


def test_home_without_a_catalog_answers_only_the_newest_serial(
    tmp_path: Path, published: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    clear_settings(monkeypatch)
    (tmp_path / "storage").symlink_to(published.home / "storage")
    with pypi_assets.connect(tmp_path) as client:
        assert client.module("yaml").serial == published.index.serial
        with pytest.raises(NoCatalogError):
            client.at(EARLIER)


def test_default_location_is_the_home_of_the_settings(commands: Commands, published: Published) -> None:
    with pypi_assets.connect() as client:
        assert client.module("yaml").serial == published.index.serial
        assert client.at(EARLIER).module("yaml").serial == EARLIER


def test_problems_are_typed_errors() -> None:
    from pypi_assets.client.client_errors import KINDS, service_error

    assert KINDS.keys() <= TITLES.keys()
    for kind in TITLES:
        error = service_error("http://host/", 400, {"type": f"/docs#{kind}", "detail": "text"}, 5.0)
        assert type(error) is KINDS.get(kind, ServiceError)
        assert (error.kind, error.status, error.detail, error.retry_after_s) == (kind, 400, "text", 5.0)
    assert issubclass(NotFoundError, ServiceError)
