"""The catalog equals the index at each complete serial, for any history of operations, kills and faults.

On PostgreSQL a tenth of the histories are tried. `make histories` tries 20,000 in several processes.
"""

from typing import Any

import pytest

from pypi_assets.catalog.database import Catalog
from pypi_assets_tests.crawl.model_following import follow
from pypi_assets_tests.crawl.model_run import shortened, try_history
from pypi_assets_tests.crawl.model_shrinking import shrink
from pypi_assets_tests.crawl.model_steps import Operation, Step, draw_history
from pypi_assets_tests.examples import examples, first_seed

HISTORIES = examples(80)
SHRINK_S = 120.0


def test_catalog_is_exact_for_random_histories(catalog: Catalog) -> None:
    """Each history has a seed: `python -m pypi_assets_tests.crawl.model_run --first SEED --histories 1`."""
    first = first_seed()
    for seed in range(first, first + (HISTORIES if catalog.is_sqlite else max(HISTORIES // 10, 1))):
        failure = try_history(catalog, draw_history(seed), seed)
        assert failure is None, f"seed {seed}: {failure.kind}\n{shortened(catalog, failure, SHRINK_S)}"


def _plan(*moves: Operation, seed: int = 0) -> dict[str, Any]:
    return {"lifetimes": [None], "order": [], "moves": list(moves), "seed": seed}


def _begin(*before: Operation, racing: float = 0.0, history: bool = False, plan: dict[str, Any] | None = None) -> Step:
    options = {"is_cached": False, "history": history, "racing": racing, "forgets": False, "revisits": 0.0}
    return "begin", {"before": list(before), **options, "plan": plan or _plan()}


FOUND: dict[str, list[Step]] = {
    "a first page shows a file before its event": [
        _begin(("add", "Alpha", "2.0", "alpha-2.0-py3-none-any.whl"), racing=0.4, plan=_plan(seed=27097))
    ],
    "a first page lacks a file before its removal, with the whole changelog": [
        _begin(("add", "gamma", "2.0", "gamma-2.0-py2-none-any.whl"), racing=0.4, history=True, plan=_plan(seed=47672))
    ],
    "a yanked file is gone before its first page is read": [
        _begin(
            ("add", "beta.pkg", "1.0", "beta_pkg-1.0.exe"),
            ("yank", "beta.pkg", "1.0", None),
            racing=0.4,
            plan=_plan(seed=33648),
        )
    ],
    "a project is displayed otherwise, and dumps of ranges follow": [
        _begin(("add", "Alpha", "1.0", "alpha-1.0.tar.gz"), ("add", "gamma", "1.0", "gamma-1.0.zip")),
        ("follow", {"plan": _plan(seed=1)}),
        ("happen", {"operations": [("add", "ALPHA", "2.0", "alpha-2.0.zip"), ("respell", "ALPHA", None, None)]}),
        ("follow", {"plan": _plan(("archive", "gamma", None, None), seed=1)}),
    ],
    "the first page of a new project shows a file before its event": [
        _begin(racing=0.4),
        ("crawl_all", {"history": False, "plan": _plan(("add", "beta.pkg", "1.0", "beta_pkg-1.0-py2-none-any.whl"))}),
        ("follow", {"plan": _plan(seed=50509)}),
    ],
    "a file joins the release of another spelling before the first crawl": [
        _begin(
            ("add-own", "gamma", "1.0.0", "gamma-1.0.0-py2-none-any.whl"),
            ("add", "gamma", "1.0", "gamma-1.0.tar.gz"),
        ),
        ("happen", {"operations": [("quarantine-release", "gamma", "1.0.0", None)]}),
        ("follow", {"plan": _plan()}),
        ("happen", {"operations": [("unquarantine-release", "gamma", "1.0.0", None)]}),
    ],
    "a name is only on the list, and events are stored again": [
        _begin(("add", "Alpha", "1.0", "alpha-1.0.tar.gz")),
        ("happen", {"operations": [("add", "Alpha", "1.0", "alpha-1.0.zip"), ("respell", "ALPHA", None, None)]}),
        ("audit", {"plan": _plan(), "share": 0.0}),
        ("happen", {"operations": [("add", "gamma", "1.0", "gamma-1.0.zip")]}),
    ],
    "a project with 2,000 files is visited again and again": [
        _begin(("add-many", "Alpha", "1.0", 2_000)),
        *[
            ("audit", {"plan": _plan(("add", "Alpha", "2.0", f"alpha-2.0-{n}-py3-none-any.whl")), "share": 100.0})
            for n in range(4)
        ],
        (
            "happen",
            {
                "operations": [
                    ("yank", "Alpha", "1.0", None),
                    ("remove-file", "Alpha", "2.0", "alpha-2.0-1-py3-none-any.whl"),
                ]
            },
        ),
    ],
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", FOUND)
def test_catalog_is_exact_for_histories_that_once_failed(name: str, catalog: Catalog) -> None:
    follow(catalog, FOUND[name])


@pytest.mark.nightly
def test_model_detects_a_missing_file(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model finds an upload without a changelog row, and shrinks the history to that upload."""
    from pypi_assets_tests.model_index import ModelIndex

    changelog = ModelIndex.changelog

    def without_zips(self: ModelIndex, since: int, until: int) -> Any:
        for page in changelog(self, since, until):
            yield [row for row in page if not getattr(row, "action", "").endswith(".zip")]

    monkeypatch.setattr(ModelIndex, "changelog", without_zips)
    gamma = ("add", "gamma", "1.0", "gamma-1.0.zip")
    history: list[Step] = [
        _begin(("add", "gamma", "1.0", "gamma-1.0.tar.gz")),
        ("happen", {"operations": [("add", "Alpha", "1.0", "alpha-1.0.tar.gz"), gamma]}),
    ]
    assert try_history(catalog, history) is not None
    shorter = shrink(history, lambda one: try_history(catalog, one) is not None, 30.0)
    assert shorter[1:] == [("happen", {"operations": [gamma]})]
