from pypi_assets.resolve.provider import Provider
from pypi_assets_tests.resolve.made_index import MadeIndex, question


def test_an_extra_requires_its_project_and_what_it_adds():
    projects = {"app": {"1": ["a", "b; extra == 'x'", "c<2; extra == 'x'", "c; extra == 'x'"]}}
    provider = Provider(MadeIndex(projects), question("app"), {})
    assert set(provider.known("app", 0).sets) == {"a"}
    assert set(provider.known("app[x]", 0).sets) == {"app", "b", "c"}
    assert [one.text for one in provider.known("app[x]", 0).wanted["c"]] == ["c<2; extra == 'x'", "c; extra == 'x'"]
