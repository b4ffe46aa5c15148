from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.published import Client, Published


def test_it_lists_the_projects_that_provide_a_module(client: Client, published: Published):
    answer = client.get("/v1/modules/yaml")
    assert answer.status_code == 200
    assert answer.json() == {
        "serial": published.index.serial,
        "set": answer.json()["set"],
        "results": [
            {"module": "yaml", "project": "PyYAML", "versions": ["6.0"]},
            {"module": "yaml", "project": "yaml-copy", "versions": ["1.0"]},
        ],
    }
    assert answer.headers["x-pypi-last-serial"] == str(published.index.serial)


def test_an_unknown_module_has_hints(client: Client):
    answer = client.get("/v1/modules/yamll").json()
    assert answer["results"] == []
    assert [unnamed(hint, "yaml") for hint in answer["hints"]] == [[]]


def test_a_prefix_is_answered_in_pages(client: Client):
    whole = client.get("/v1/modules/?prefix=1").status_code
    assert whole == 404  # a name has at least one character
    found, cursor, pages = [], "", 0
    while cursor is not None:
        page = client.get(f"/v1/modules/_?prefix=1&limit=1{cursor and '&cursor=' + cursor}").json()
        found += page["results"]
        cursor, pages = page.get("next"), pages + 1
    assert pages == len(found) == 1
    every = client.get("/v1/modules/y?prefix=1").json()
    assert [(one["module"], one["project"]) for one in every["results"]] == [
        ("yaml", "PyYAML"),
        ("yaml", "yaml-copy"),
        ("yaml.nodes", "PyYAML"),
    ]
    first = client.get("/v1/modules/y?prefix=1&limit=2").json()
    rest = client.get(f"/v1/modules/y?prefix=1&limit=2&cursor={first['next']}").json()
    assert first["results"] + rest["results"] == every["results"]
    assert "next" not in rest


def test_what_does_not_go_together_is_a_problem(client: Client):
    assert client.get("/v1/modules/yaml?cursor=abc").json()["parameter"] == "cursor"
    assert client.get("/at/27.27/v1/modules/yaml?prefix=1").status_code == 409
    assert len(client.get("/v1/modules/yaml?limit=1").json()["results"]) == 1
