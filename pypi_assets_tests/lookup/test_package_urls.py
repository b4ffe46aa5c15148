import pytest

from pypi_assets.lookup.answers import LookupNameError
from pypi_assets.lookup.package_urls import PackageUrl, parse_purl, purl_result, wrong_purl

FILES = [
    {"project": "Demo", "filename": "demo-1.tar.gz", "yanked": True},
    {"project": "Demo", "filename": "demo-1.whl", "yanked": False},
]


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("pkg:pypi/demo", PackageUrl("demo", None, None)),
        ("PKG:PyPI/Demo_Pkg@1.0", PackageUrl("demo-pkg", "1.0", None)),
        ("pkg://pypi/demo@1.0%2Blocal", PackageUrl("demo", "1.0+local", None)),
        (" pkg:pypi/demo@1?file_name=demo-1.tar.gz&x=1#sub/path ", PackageUrl("demo", "1", "demo-1.tar.gz")),
        ("pkg:pypi/demo@", PackageUrl("demo", None, None)),
    ],
)
def test_parts_are_found(text: str, parsed: PackageUrl):
    assert parse_purl(text) == parsed


@pytest.mark.parametrize(
    "text", ["", "demo", "pkg:npm/demo", "pkg:pypi/", "pkg:pypi/a/b", "pkg:pypi/-x-", "pkg:pypi/%00"]
)
def test_what_is_none_is_refused(text: str):
    with pytest.raises(LookupNameError):
        parse_purl(text)


def test_a_result_is_of_the_files_that_are_named():
    found = purl_result("p", PackageUrl("demo", "1", None), FILES)
    assert (found["exists"], found["yanked"], len(found["files"])) == (True, False, 2)
    found = purl_result("p", PackageUrl("demo", "1", "demo-1.tar.gz"), FILES)
    assert (found["yanked"], found["files"], found["project"]) == (True, ["demo-1.tar.gz"], "Demo")
    assert purl_result("p", PackageUrl("demo", "1", "other"), FILES)["exists"] is False
    assert wrong_purl("p", LookupNameError("why"))["error"] == "why"
