"""Problem documents, and the errors that become them."""

import json

import pytest
from sqlalchemy.exc import OperationalError

from pypi_assets.catalog.database import CatalogError
from pypi_assets.errors import NotAnsweredError
from pypi_assets.leveldbs.format.errors import LeveldbDamagedError, NotBuiltYetError
from pypi_assets.lookup.answers import LookupNameError
from pypi_assets.service.problems import bad_parameter, defect, not_found, problem_answer, problem_of
from pypi_assets.storage.store import StorageError


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (LookupNameError("not a name"), 400, "bad-parameter"),
        (NotAnsweredError("later"), 404, "not-exact"),
        (NotBuiltYetError("not yet"), 503, "not-built-yet"),
        (LeveldbDamagedError("broken"), 503, "unavailable"),
        (StorageError("gone"), 503, "unavailable"),
        (CatalogError("gone"), 503, "unavailable"),
        (TimeoutError("a secret"), 503, "too-slow"),
        (OperationalError("SELECT secret", {}, Exception("password")), 503, "unavailable"),
    ],
)
def test_expected_errors_are_problems(error: Exception, status: int, kind: str):
    found = problem_of(error)
    assert found is not None
    assert (found.problem.status, found.problem.type) == (status, f"/docs#{kind}")
    assert "secret" not in found.problem.detail
    assert "password" not in found.problem.detail
    assert (("Retry-After", "5") in found.headers) == (status == 503)


def test_a_defect_is_none_of_them():
    assert problem_of(ZeroDivisionError()) is None
    assert defect().problem.status == 500


def test_a_document_has_the_members_of_the_standard_and_ours():
    answer = problem_answer(bad_parameter("limit", "limit: too large", "1 to 10"), serial=7)
    assert (answer.status, answer.media_type, answer.serial) == (400, "application/problem+json", 7)
    assert json.loads(answer.body) == {
        "type": "/docs#bad-parameter",
        "title": "A value is not accepted",
        "status": 400,
        "detail": "limit: too large",
        "parameter": "limit",
        "accepts": "1 to 10",
    }


def test_a_long_detail_is_cut():
    assert len(not_found("x" * 10_000).problem.detail) == 2_000
