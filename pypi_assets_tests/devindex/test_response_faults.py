"""Faulty responses over a real connection: truncated, slow, hanging or changed."""

import gzip

import pytest
import requests

from pypi_assets.devindex.history import History
from pypi_assets_tests.devindex.faulty import WHEEL, content_of, fault, path_of, served


def test_reset_connection(two_projects: History) -> None:
    path, content = path_of(two_projects, WHEEL), content_of(two_projects, WHEEL)
    with served(two_projects, fault("reset", requests=[1]) + fault("reset", sent=0.5, requests=[2])) as client:
        with pytest.raises(requests.ConnectionError, match="reset by peer"):
            client.get(path)
        answer = client.session.get(f"{client.url.removesuffix('/simple/')}{path}", stream=True, timeout=60)
        assert (answer.status_code, answer.headers["Content-Length"]) == (200, str(len(content)))
        with pytest.raises(requests.exceptions.RequestException, match="reset by peer"):
            assert len(answer.content)
        assert client.get(path).content == content


def test_truncated_body(two_projects: History) -> None:
    with served(two_projects, fault("truncated", sent=0.25, requests=[1]) + fault("truncated", requests=[2])) as client:
        for _ in range(2):
            with pytest.raises(requests.exceptions.RequestException, match=r"IncompleteRead|broken") as caught:
                client.get("/simple/demo/")
        length = len(client.get("/simple/demo/").content)
    assert f"{length // 2} bytes read" in str(caught.value)


def test_slow_body_is_complete(two_projects: History) -> None:
    path, content = path_of(two_projects, WHEEL), content_of(two_projects, WHEEL)
    with served(two_projects, fault("slow", bytes_per_second=len(content) / 5, on=["file"])) as client:
        url = f"{client.url.removesuffix('/simple/')}{path}"
        with client.session.get(url, stream=True, timeout=60) as answer:
            first = answer.raw.read1(len(content))
            assert 0 < len(first) < len(content)
            assert first + answer.raw.read() == content


def test_slow_body_ends_when_its_client_disconnects(two_projects: History) -> None:
    with served(two_projects, fault("slow", bytes_per_second=1, requests=[1])) as client:
        with client.session.get(f"{client.url}demo/", stream=True, timeout=60) as answer:
            assert 0 < len(answer.raw.read1(100)) < 100
        assert client.get("/simple/demo/").status_code == 200


def test_hanging_connection(two_projects: History) -> None:
    with served(two_projects, fault("hang", requests=[1]) + fault("hang", seconds=0.01, requests=[2])) as client:
        with pytest.raises(requests.ReadTimeout):
            client.get("/simple/demo/", timeout=0.1)
        with pytest.raises(requests.ConnectionError, match="without response"):
            client.get("/simple/demo/")
        assert client.get("/simple/demo/").status_code == 200


def test_gzip_bodies(two_projects: History) -> None:
    with served(two_projects, fault("gzip", requests=[1]) + fault("gzip", broken=True, requests=[2])) as client:
        good = client.get("/simple/demo/")
        assert good.headers["Content-Encoding"] == "gzip"
        with pytest.raises(requests.exceptions.ContentDecodingError):
            client.get("/simple/demo/")
        plain = client.get("/simple/demo/")
    assert "Content-Encoding" not in plain.headers
    assert good.content == plain.content
    assert int(good.headers["Content-Length"]) == len(gzip.compress(plain.content))


def test_wrong_bytes_and_wrong_sizes_of_files(two_projects: History) -> None:
    path, content = path_of(two_projects, WHEEL), content_of(two_projects, WHEEL)
    plan = fault("wrong-bytes", requests=[1]) + fault("wrong-size", more=3, requests=[2])
    plan += fault("wrong-size", more=-3, requests=[3])
    with served(two_projects, plan) as client:
        bytes_, longer, shorter = (client.get(path).content for _ in range(3))
        part = client.get(path, Range="bytes=0-9")
    assert (len(bytes_), bytes_ == content) == (len(content), False)
    assert (longer, shorter) == (content + bytes(3), content[:-3])
    assert part.content == content[:10]
