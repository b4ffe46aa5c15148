"""Owners of imports over HTTP: what `lookup/test_owners.py` tests, in the form of the service."""

from pypi_assets_tests.service.published import Client, Published


def test_an_import_has_its_candidates_with_reasons(client: Client, published: Published):
    [found] = client.get("/v1/owners/yaml.nodes.ScalarNode").json()["results"]
    assert (found["import"], found["module"], found["serial"]) == (
        "yaml.nodes.ScalarNode",
        "yaml.nodes",
        published.index.serial,
    )
    [yaml] = client.get("/v1/owners/yaml").json()["results"]
    assert [(one["rank"], one["project"]) for one in yaml["candidates"]] == [(1, "PyYAML"), (2, "yaml-copy")]
    assert yaml["candidates"][0]["reasons"]["dependents"] == 2
    [first] = client.get("/v1/owners/yaml?limit=1").json()["results"]
    assert first["candidates"] == yaml["candidates"][:1]
    [unknown] = client.get("/v1/owners/nothing").json()["results"]
    assert (unknown["module"], unknown["candidates"]) == (None, [])


def test_several_are_answered_in_their_order_also_at_a_serial(client: Client, published: Published):
    names = ["demo.new", "nothing", "yaml", "yaml"]
    latest = client.post("/v1/owners", {"imports": names}).json()["results"]
    assert [one["import"] for one in latest] == names
    serial = published.index.serial
    past = client.post(f"/at/{serial}.{serial}/v1/owners", {"imports": names}).json()["results"]
    assert past == latest


def test_what_is_too_much_is_a_problem(client: Client):
    found = client.post("/v1/owners", {"imports": ["a"] * 5_001})
    assert (found.status_code, found.json()["type"]) == (413, "/docs#too-large")
    assert (found.json()["parameter"], found.json()["accepts"]) == ("body", "at most 5,000 items")
    assert client.post("/v1/owners?limit=21", {"imports": ["a"]}).json()["parameter"] == "limit"
    assert client.post("/v1/owners", {"imports": ["a" * 1_001]}).json()["parameter"] == "body"
    assert client.get("/v1/owners/yaml?limit=0").json()["parameter"] == "limit"
    assert client.get("/v1/owners/" + "a" * 1_001).json()["parameter"] == "name"


def test_five_thousand_imports_are_answered(client: Client):
    names = [f"yaml.part{number}" for number in range(2_500)] + ["yaml"] * 2_500
    answer = client.post("/v1/owners", {"imports": names})
    assert answer.status_code == 200
    results = answer.json()["results"]
    assert [one["import"] for one in results] == names
    assert {one["module"] for one in results} == {"yaml"}


def test_of_several_imports_each_has_the_best_candidates_alone(changing: Published):
    for number in range(12):
        changing.add("wheel", f"more-{number}", "1.0", files={"yaml/__init__.py": ""})
    changing.publish()
    with changing.client() as client:
        [all_of_one] = client.get("/v1/owners/yaml").json()["results"]
        assert len(all_of_one["candidates"]) == 14
        for query, most in (("", 10), ("?limit=20", 14), ("?limit=1", 1)):
            found = client.post(f"/v1/owners{query}", {"imports": ["yaml", "demo"]}).json()["results"]
            assert found[0]["candidates"] == all_of_one["candidates"][:most]
