from pypi_assets.resolve.provider import Provider
from pypi_assets.resolve.questions import Semantics, parse_wanted
from pypi_assets_tests.resolve.made_index import MadeIndex, question

PROJECTS = {
    "app": {"1": ["late>1", "soon==1", "plain", "bounded<3"]},
    **{name: {"1": [], "2": []} for name in ("late", "soon", "plain", "bounded", "wanted")},
}


def order(semantics: Semantics, conflicts: dict[str, int] | None = None, culprits: dict[str, int] | None = None):
    """In which order the projects are decided that are required by `app`, and by the question."""
    provider = Provider(MadeIndex(PROJECTS), question("app", "wanted", semantics=semantics), {})
    requirements = [parse_wanted(text) for text in ("app", "wanted")]
    provider.order_roots(requirements)
    sets = {package: found for _, some in provider.roots(requirements) for package, found in some.items()}
    sets |= provider.get_dependencies("app", 0)
    counts = conflicts or {}, culprits or {}
    return sorted(sets.keys() - {"app"}, key=lambda package: provider.prioritize(package, sets[package], *counts))


def test_pip_decides_by_what_is_required_of_a_project_and_then_by_name():
    assert order(Semantics.PIP) == ["soon", "bounded", "wanted", "late", "plain"]
    assert order(Semantics.PIP, {"plain": 5}) == ["plain", "soon", "bounded", "wanted", "late"]


def test_uv_decides_by_when_a_project_was_first_seen():
    assert order(Semantics.UV) == ["soon", "wanted", "late", "plain", "bounded"]
    assert order(Semantics.UV, {"plain": 5}, {"bounded": 5}) == ["soon", "plain", "bounded", "wanted", "late"]


def test_an_extra_requires_its_project_and_what_it_adds():
    projects = {"app": {"1": ["a", "b; extra == 'x'", "c<2; extra == 'x'", "c; extra == 'x'"]}}
    provider = Provider(MadeIndex(projects), question("app"), {})
    assert set(provider.get_dependencies("app", 0)) == {"a"}
    assert set(provider.get_dependencies("app[x]", 0)) == {"app", "b", "c"}
    assert [one.text for one in provider.known("app[x]", 0).wanted["c"]] == ["c<2; extra == 'x'", "c; extra == 'x'"]
