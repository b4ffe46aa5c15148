import pickle

from pypi_assets.index.errors import ContentError, RefusedError, StaleError, TransientError


def test_errors_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(TransientError("HTTP 503", "https://index.example.org/simple/", 7.0)))
    assert type(error) is TransientError
    assert (error.url, error.retry_after_s) == ("https://index.example.org/simple/", 7.0)
    assert str(error) == "HTTP 503 (https://index.example.org/simple/)"


def test_errors_differ_by_remedy() -> None:
    assert issubclass(StaleError, TransientError)
    assert issubclass(ContentError, RefusedError)
    assert not issubclass(RefusedError, TransientError)
