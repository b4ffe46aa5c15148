"""Messages about a store contain the variables to change, for each way in which keys or the endpoint can be wrong."""

import pytest

from pypi_assets.storage.store import StorageError, open_storage
from pypi_assets_tests.index.loopback import Answer, serving
from pypi_assets_tests.named import unnamed

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
ENDPOINT = ("AWS_ENDPOINT_URL",)
XML = {"Content-Type": "application/xml"}


def refusal(code: str, text: str) -> bytes:
    return f"<Error><Code>{code}</Code><Message>{text}</Message></Error>".encode()


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pypi_assets.storage.store.RETRIES", {"max_retries": 1})
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "testing")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_REGION", "us-east-1")


def failure_of_get(url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    with pytest.raises(StorageError) as caught:
        open_storage("s3://assets/prefix").get("demo.json")
    return str(caught.value)


def test_store_error_contains_the_relevant_variables(
    subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases: list[tuple[Answer, tuple[str, ...]]] = [
        (Answer(403, refusal("InvalidAccessKeyId", "The key does not exist"), XML), KEYS),
        (Answer(403, refusal("SignatureDoesNotMatch", "The signature does not match"), XML), KEYS),
        (Answer(401), KEYS),
        (Answer(404, refusal("NoSuchBucket", "The specified bucket does not exist"), XML), ENDPOINT),
        (Answer(405), ENDPOINT),
        (Answer(501), ENDPOINT),
        (Answer(301), ("AWS_REGION",)),
    ]
    for answer, shown in cases:
        with subtests.test(status=answer.status), serving(lambda _, answer=answer: answer) as loopback:
            message = failure_of_get(loopback.url, monkeypatch)
            assert unnamed(message, "s3://assets/prefix/demo.json", *shown) == []
            others = {*KEYS, *ENDPOINT, "AWS_REGION"} - set(shown)
            assert [name for name in others if name in message] == []


def test_error_of_unreachable_store_contains_its_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda _: Answer(200)) as loopback:
        assert unnamed(failure_of_get(loopback.url.replace("http:", "https:"), monkeypatch), *ENDPOINT) == []
    for url in (loopback.url, "http://store.invalid"):
        assert unnamed(failure_of_get(url, monkeypatch), *ENDPOINT) == []


def test_error_of_a_folder_contains_no_remote_store_variable(tmp_path: object) -> None:
    with pytest.raises(StorageError) as caught:
        open_storage(f"file://{tmp_path}").get("missing.json")
    assert "AWS_" not in str(caught.value)
