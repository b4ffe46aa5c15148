"""Answers are also tables, with all columns even without rows."""

from pypi_assets.lookup import Distribution, ModuleResult, open_latest
from pypi_assets_tests.lookup.publisher import Publisher


def test_answers_as_frames(publisher: Publisher) -> None:
    with open_latest("modules", publisher.storage) as modules, open_latest("depgraph", publisher.storage) as depgraph:
        frame = modules.module("demo").frame()
        assert list(frame.columns) == list(ModuleResult.__annotations__)
        assert frame.to_dict("records") == list(modules.module("demo").results)
        assert frame.attrs == {"version": 1, "serial": 100}
        assert len(modules.modules("d").frame()) == 2
        nothing = depgraph.project("nope").frame()
        assert (len(nothing), list(nothing.columns)) == (0, list(Distribution.__annotations__))
        assert set(nothing.columns) == set(depgraph.project("demo").results[0])
        assert set(depgraph.dependents("nope").frame().columns) == set(depgraph.dependents("base").results[0])
