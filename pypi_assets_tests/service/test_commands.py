from pypi_assets_tests.service.published import Client


def test_it_lists_the_projects_that_install_a_command(client: Client):
    found = client.get("/v1/commands/demo").json()
    assert found["results"] == [{"command": "demo", "project": "demo", "normalized": "demo", "versions": ["1.0"]}]
    assert client.get("/v1/commands/a/b").json()["results"] == []
    [hint] = client.get("/v1/commands/demoo").json()["hints"]
    assert "demo" in hint.split("?")[0].split()


def test_none_is_found_at_an_earlier_serial(client: Client):
    answer = client.get("/at/12.12/v1/commands/demo")
    assert (answer.status_code, answer.headers["content-type"]) == (409, "application/problem+json")
    problem = answer.json()
    assert (problem["parameter"], problem["type"]) == ("at", "/docs#conflict")
    assert problem["detail"]
    assert "/at/" in problem["accepts"]
    assert client.get("/at/12.12/v1/projects/demo/1.0").json()["result"]["commands"] == ["demo"]
    assert client.get("/at/12/v1/commands/demo").headers["location"] == "../../../12.12/v1/commands/demo"
