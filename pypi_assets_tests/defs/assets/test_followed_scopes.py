"""Scopes as partitions: the results of a run of one scope."""

from pypi_assets.crawl.scope_crawl import start_scope
from pypi_assets.scopes.plan import ScopePlan
from pypi_assets.scopes.root_files import named_roots
from pypi_assets_tests.defs.conftest import Pipeline, failure_text
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex, live


def test_projects_are_found_before_all_files_are_read(index: ServedIndex, pipeline: Pipeline) -> None:
    rules = '[[rule]]\nkinds = ["sdist"]\nskip = true\n'
    start_scope(pipeline.crawler, ScopePlan("mine", named_roots(["alpha"]).extras, rules=rules))
    pipeline.instance.add_dynamic_partitions("scopes", ["mine"])
    assert pipeline.materialize(pipeline.asset("scope_projects"), "mine").success
    found = pipeline.metadata("scope_projects", "mine")
    assert {key: found[key] for key in ("projects at depth 0", "projects at depth 1", "discovered", "visited")} == {
        "projects at depth 0": 1,
        "projects at depth 1": 1,
        "discovered": 2,
        "visited": 2,
    }
    assert live(pipeline.catalog) == set()
    assert pipeline.materialize(pipeline.asset("scope_distribution_data"), "mine").success
    found = pipeline.metadata("scope_distribution_data", "mine")
    assert (found["read"], found["skipped"], found["reads_left"], found["entering"]) == (2, 1, 0, 0)
    assert found["total: live"] == 3
    assert {name for name, _ in live(pipeline.catalog)} == {
        "alpha-1.0-py3-none-any.whl",
        "alpha-1.0.tar.gz",
        "beta-1.0-py3-none-any.whl",
    }


def test_backfill_marks_each_scope_and_fails_on_an_unknown_one(index: ServedIndex, pipeline: Pipeline) -> None:
    for name, root in (("first", "alpha"), ("second", "gamma")):
        start_scope(pipeline.crawler, ScopePlan(name, named_roots([root]).extras))
    pipeline.instance.add_dynamic_partitions("scopes", ["first", "second", "gone"])
    assert pipeline.asset("scope_projects").backfill_policy.max_partitions_per_run == 1  # type: ignore[union-attr]
    for name in ("first", "second"):
        assert pipeline.run("follow_scopes", name).success
    assert pipeline.marked("scope_distribution_data") == ["first", "second"]
    failed = pipeline.run("follow_scopes", "gone", raise_on_error=False)
    assert unnamed(failure_text(failed), "gone", "first", "second") == []
