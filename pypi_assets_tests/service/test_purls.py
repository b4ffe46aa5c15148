from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.published import Client, Published

PURLS = [
    "pkg:pypi/demo",
    "pkg:pypi/Demo@2.0",
    "pkg:pypi/demo@1.0?file_name=demo-1.0.tar.gz",
    "pkg:pypi/demo@9",
    "pkg:pypi/none",
    "pkg:npm/demo@1.0",
]


def test_each_has_a_result_in_its_order(client: Client, published: Published):
    found = client.post("/v1/purls", {"purls": PURLS}).json()["results"]
    assert [one["purl"] for one in found] == PURLS
    assert [(one["exists"], one["yanked"], len(one["files"])) for one in found] == [
        (True, False, 4),
        (True, True, 1),
        (True, False, 1),
        (False, None, 0),
        (False, None, 0),
        (False, None, 0),
    ]
    assert unnamed(found[-1]["error"], "pypi") == []
    serial = published.index.serial
    assert client.post(f"/at/{serial}.{serial}/v1/purls", {"purls": PURLS}).json()["results"] == found


def test_too_many_are_a_problem(client: Client):
    assert client.post("/v1/purls", {"purls": ["pkg:pypi/demo"] * 1_001}).status_code == 413
    assert client.post("/v1/purls", {"purls": ["x" * 9_000_000]}).status_code == 413
