"""devindex returns the recorded responses of the server that runs PyPI, for the same history, byte for byte.

Recorded bodies are translated first: `{index}` and `{files}` become devindex's only URL, `packages-archive` (that
recording's name for it) becomes `packages`, and files whose bytes were not recorded are rebuilt with the recorded name,
metadata and size, so that only their digests are replaced. ETag and Content-Length are derived from a translated body
by the rule that the untranslated ones follow.
"""

import base64
import gzip
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from xmlrpc.client import loads

import pytest
import requests

from pypi_assets.devindex.history import History
from pypi_assets.devindex.server import running
from pypi_assets_tests.builders import tar_bytes, zip_bytes

DATA = Path(__file__).parent.parent / "data" / "warehouse-recording.json"
DOCS = Path(__file__).parents[2] / "docs" / "development.md"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Difference:
    """A deliberate difference: the affected exchanges, the reason, and the function that applies it."""

    places: tuple[str, ...]
    reason: str
    adapt: Callable[[Answer], Answer]


def _replace_body(pattern: str, replacement: str) -> Callable[[Answer], Answer]:
    def adapt(answer: Answer) -> Answer:
        return replace(answer, body=re.sub(pattern.encode(), replacement.encode(), answer.body, flags=re.DOTALL))

    return adapt


def _with_validators(answer: Answer) -> Answer:
    digest = hashlib.sha256(answer.body).hexdigest()
    return replace(answer, headers={**answer.headers, "accept-ranges": "bytes", "etag": f'"{digest}"'})


def _first_16_bytes(answer: Answer) -> Answer:
    headers = {**_with_validators(answer).headers, "content-length": "16", "content-range": "bytes 0-15/884"}
    return Answer(206, headers, answer.body[:16])


DIFFERENCES = (
    Difference(
        ("steps[6] list_packages_with_serial",),
        "`list_packages_with_serial` is always up to date; the recorded one comes from a cache once",
        _replace_body(r"(<name>demo_lib</name>\s*<value><int>)14<", r"\g<1>15<"),
    ),
    Difference(
        ("odd_requests[6] /simple/demo-pkg/",),
        "the HTML page has no debug toolbar",
        _replace_body(r'<link rel="stylesheet"[^>]*/_debug_toolbar/.*</div>\n(?=</body>)', ""),
    ),
    Difference(
        ("files[0] wheel", "files[1] metadata", "files[3] sdist"),
        "files have an ETag (their sha256) and a header that they can be read in ranges",
        _with_validators,
    ),
    Difference(
        ("files[2] wheel",),
        "a Range request is answered with 206; the recorded file host ignores it and sends the whole file",
        _first_16_bytes,
    ),
)


@cache
def recording() -> dict[str, Any]:
    return json.loads(DATA.read_text(encoding="utf-8"))


def exchanges() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each recorded exchange with its place."""
    for number, step in enumerate(recording()["steps"]):
        for exchange in step["exchanges"]:
            yield f"steps[{number}] {_subject(exchange['request'])}", exchange
    for part in ("files", "odd_requests"):
        for number, exchange in enumerate(recording()[part]):
            yield f"{part}[{number}] {_subject(exchange['request'])}", exchange


def _subject(request: dict[str, Any]) -> str:
    if request["method"] == "POST":
        return str(loads(request["body"])[1])
    path = request["path"]
    kinds = {".metadata": "metadata", ".whl": "wheel", ".tar.gz": "sdist"}
    return next((kind for suffix, kind in kinds.items() if path.endswith(suffix)), path)


def endpoint_of(request: dict[str, Any]) -> str:
    """Return the first part of the path that serves a recorded request, or XML-RPC."""
    if request["method"] == "POST":
        return "XML-RPC"
    path = request["path"].replace("{files}/packages-archive/", "/packages/").removeprefix("{index}")
    return f"/{path.split('/')[1]}/"


def recorded_answer(exchange: dict[str, Any]) -> Answer:
    response = exchange["response"]
    body = response.get("body", "").encode() or base64.b64decode(response.get("body_base64", ""))
    return Answer(response["status"], response["headers"], body)


def md5_etag(body: bytes) -> str:
    return f'"{base64.b64encode(hashlib.md5(body).digest()).decode().rstrip("=")}"'


@cache
def recorded_files() -> dict[str, dict[str, Any]]:
    """Return each file on a recorded page of the older JSON API, by name."""
    files = {}
    for place, exchange in exchanges():
        if place.endswith("/json") and exchange["response"]["status"] == 200:
            for shown in json.loads(exchange["response"]["body"])["releases"].values():
                files |= {file["filename"]: file for file in shown}
    return files


def build_file(folder: Path, filename: str, project: str, version: str) -> Path:
    """Return the recorded bytes of a file, or others of the same size with the same metadata."""
    path = folder / filename
    for exchange in recording()["files"]:
        if exchange["request"]["path"].endswith(filename):
            path.write_bytes(base64.b64decode(exchange["response"]["body_base64"]))
            return path
    size = recorded_files()[filename]["size"]
    metadata = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\nSummary: t\n\n"
    if filename.endswith(".whl"):
        stem = "-".join(filename.split("-")[:2])
        buffer = io.BytesIO(zip_bytes({f"{stem}.dist-info/METADATA": metadata}))
        with zipfile.ZipFile(buffer, "a") as archive:
            archive.comment = b"." * (size - len(buffer.getvalue()))
        content = buffer.getvalue()
    else:
        content = tar_bytes({f"{filename.removesuffix('.tar.gz')}/PKG-INFO": metadata})
        content += bytes(size - len(content))
        assert gzip.decompress(content)
    path.write_bytes(content)
    assert path.stat().st_size == size
    return path


def upload(history: History, folder: Path, project: str, version: str, *filenames: str) -> None:
    for filename in filenames:
        at = datetime.fromisoformat(recorded_files()[filename]["upload_time_iso_8601"])
        history.add(build_file(folder, filename, project, version), at=at)


def time_of(serial: int) -> datetime:
    """Return the time of the event with that serial in the recorded changelog."""
    (rows,), _ = loads(recording()["odd_requests"][7]["response"]["body"])
    return datetime.fromtimestamp(rows[serial - 1][2], UTC)


def do_step(number: int, history: History, folder: Path) -> None:
    """Repeat on devindex a step that was recorded on the other server."""
    wheel, sdist = "{}-{}-py3-none-any.whl".format, "{}-{}.tar.gz".format
    match number:
        case 1:
            upload(history, folder, "Demo.Pkg", "1.0", wheel("demo_pkg", "1.0"), sdist("demo_pkg", "1.0"))
        case 2:
            upload(history, folder, "demo_lib", "0.1", wheel("demo_lib", "0.1"), sdist("demo_lib", "0.1"))
        case 3:
            upload(history, folder, "demo_lib", "0.2", wheel("demo_lib", "0.2"))
        case 4:
            history.yank("demo_lib", "0.1", at=time_of(13))
        case 5:
            history.unyank("demo_lib", "0.1", at=time_of(14))
        case 6:
            history.remove_file(sdist("demo_lib", "0.1"), at=time_of(15))
        case 7:
            for version in ("1.0", "1.1"):
                names = wheel("other_proj", version), sdist("other_proj", version)
                upload(history, folder, "other-proj", version, *names)
        case 8:
            history.remove_release("other-proj", "1.0", at=time_of(24))
        case 9:
            history.quarantine("Demo.Pkg", at=time_of(25))
        case 10:
            history.unquarantine("Demo.Pkg", at=time_of(26))
        case 11:
            history.quarantine_release("demo_lib", "0.2", at=time_of(27))
        case 12:
            history.remove_project("other-proj", at=time_of(28))
        case 13:
            upload(history, folder, "other-proj", "2.0", wheel("other_proj", "2.0"))
        case 14:
            history.archive("demo_lib")


@dataclass
class Translation:
    """Translates recorded text to the URLs and digests of one devindex."""

    base: str
    words: dict[str, str] = field(default_factory=dict)

    def learn(self, history: History) -> None:
        for file in history.state().files.values():
            recorded = recorded_files()[file.filename]["digests"]
            ours = {"sha256": file.sha256, "md5": file.md5, "blake2b_256": file.blake2b_256}
            self.words |= {recorded[name]: ours[name] for name in ours}
            blake2b = recorded["blake2b_256"]
            self.words[f"{blake2b[:2]}/{blake2b[2:4]}/{blake2b[4:]}/{file.filename}"] = file.path

    def text(self, text: str) -> str:
        text = text.replace("{files}/packages-archive/", f"{self.base}/packages/").replace("{index}", self.base)
        for recorded, ours in self.words.items():
            text = text.replace(recorded, ours)
        return text

    def answer(self, recorded: Answer, adapt: Callable[[Answer], Answer]) -> Answer:
        adapted = adapt(recorded)
        if adapted.headers.get("content-type") in {"application/octet-stream", "application/gzip"}:
            return adapted
        body = self.text(adapted.body.decode()).encode()
        headers = {name: self.text(value) for name, value in adapted.headers.items()}
        if body != recorded.body:
            headers["content-length"] = str(len(body))
            if "etag" in headers:
                self.words[recorded.headers["etag"]] = headers["etag"] = md5_etag(body)
        return Answer(adapted.status, headers, body)


def request_again(translation: Translation, request: dict[str, Any]) -> Answer:
    path = translation.text(request["path"])
    headers = {name: translation.text(value) for name, value in request["headers"].items()}
    url = path if path.startswith("http") else translation.base + path
    response = requests.request(
        request["method"], url, headers=headers, data=request.get("body"), timeout=10, allow_redirects=False
    )
    shown = {name.lower(): value for name, value in response.headers.items() if name.lower() not in {"date", "server"}}
    return Answer(response.status_code, shown, response.content)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Answer, Answer, Answer]]:
    """Return by place: the translated recorded response, the same with the listed difference, and devindex's
    response.
    """
    folder = tmp_path_factory.mktemp("contract")
    adaptations = {place: difference.adapt for difference in DIFFERENCES for place in difference.places}
    history = History(folder / "index", owner="crawler")
    compared, done = {}, -1
    with running(folder / "index") as url:
        translation = Translation(url.removesuffix("/simple/"))
        for place, exchange in exchanges():
            if (step := re.match(r"steps\[(\d+)\]", place)) and int(step[1]) != done:
                done = int(step[1])
                do_step(done, history, folder)
                assert (history.state().last_serial or 0) == recording()["steps"][done]["serial_after"]
                translation.learn(history)
            recorded = recorded_answer(exchange)
            plain = translation.answer(recorded, lambda answer: answer)
            adapted = translation.answer(recorded, adaptations.get(place, lambda answer: answer))
            compared[place] = plain, adapted, request_again(translation, exchange["request"])
    return compared


ENDPOINTS = ("/simple/", "/pypi/", "/packages/", "XML-RPC")


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_responses_match_the_recording(
    answers: dict[str, tuple[Answer, Answer, Answer]], endpoint: str, subtests: pytest.Subtests
) -> None:
    places = [place for place, exchange in exchanges() if endpoint_of(exchange["request"]) == endpoint]
    assert places
    for place in places:
        with subtests.test(place):
            _, expected, answer = answers[place]
            assert answer == expected


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.places[0])
def test_listed_differences_are_needed(
    answers: dict[str, tuple[Answer, Answer, Answer]], difference: Difference
) -> None:
    for place in difference.places:
        recorded, _, answer = answers[place]
        assert answer != recorded, f"{place} now matches the recording: remove it from the list"


def test_docs_list_the_differences() -> None:
    listed = re.search(r"## What differs\n(.*?)(\n## |\Z)", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert listed
    rows = [line.removeprefix("- ") for line in listed[1].splitlines() if line.startswith("- ")]
    assert rows == [difference.reason for difference in DIFFERENCES]


def test_places_of_exchanges_are_unique() -> None:
    steps = sum(len(step["exchanges"]) for step in recording()["steps"])
    assert {endpoint_of(exchange["request"]) for _, exchange in exchanges()} == set(ENDPOINTS)
    total = steps + len(recording()["files"]) + len(recording()["odd_requests"])
    assert len({place for place, _ in exchanges()}) == total == 163


def test_recorded_etags_are_the_md5_of_the_body() -> None:
    plain = [
        answer
        for answer in (recorded_answer(exchange) for _, exchange in exchanges())
        if "etag" in answer.headers and answer.body and b"{files}" not in answer.body
    ]
    assert plain
    assert all(answer.headers["etag"] == md5_etag(answer.body) for answer in plain)
