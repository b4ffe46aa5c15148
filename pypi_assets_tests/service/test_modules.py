"""Modules, commands, owners, hashes and package URLs over HTTP."""

from sqlalchemy import insert, update

from pypi_assets.catalog.tables import distributions, epochs
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.service.published import Client, Published


def test_module_lists_its_providers(client: Client, published: Published):
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


def test_unknown_module_has_hints(client: Client):
    answer = client.get("/v1/modules/yamll").json()
    assert answer["results"] == []
    assert [unnamed(hint, "yaml") for hint in answer["hints"]] == [[]]


def test_prefix_results_are_paged(client: Client):
    whole = client.get("/v1/modules/?prefix=1").status_code
    assert whole == 404  # a name has at least one character
    found, cursor, pages = [], "", 0
    while cursor is not None:
        page = client.get(f"/v1/modules/_?prefix=1&limit=1{cursor and '&cursor=' + cursor}").json()
        found += page["results"]
        cursor, pages = page.get("next"), pages + 1
    assert pages == len(found) == 1
    every = client.get("/v1/modules/y?prefix=1").json()
    assert [(result["module"], result["project"]) for result in every["results"]] == [
        ("yaml", "PyYAML"),
        ("yaml", "yaml-copy"),
        ("yaml.nodes", "PyYAML"),
    ]
    first = client.get("/v1/modules/y?prefix=1&limit=2").json()
    rest = client.get(f"/v1/modules/y?prefix=1&limit=2&cursor={first['next']}").json()
    assert first["results"] + rest["results"] == every["results"]
    assert "next" not in rest


def test_conflicting_parameters_are_a_problem(client: Client):
    assert client.get("/v1/modules/yaml?cursor=abc").json()["parameter"] == "cursor"
    assert client.get("/at/27.27/v1/modules/yaml?prefix=1").status_code == 409
    assert len(client.get("/v1/modules/yaml?limit=1").json()["results"]) == 1


def test_command_lists_the_projects_that_install_it(client: Client):
    document = client.get("/v1/commands/demo").json()
    assert document["results"] == [{"command": "demo", "project": "demo", "normalized": "demo", "versions": ["1.0"]}]
    assert client.get("/v1/commands/a/b").json()["results"] == []
    [hint] = client.get("/v1/commands/demoo").json()["hints"]
    assert "demo" in hint.split("?")[0].split()


def test_commands_are_unavailable_at_an_earlier_serial(client: Client):
    answer = client.get("/at/12.12/v1/commands/demo")
    assert (answer.status_code, answer.headers["content-type"]) == (409, "application/problem+json")
    problem = answer.json()
    assert (problem["parameter"], problem["type"]) == ("at", "/docs#conflict")
    assert problem["detail"]
    assert "/at/" in problem["accepts"]
    assert client.get("/at/12.12/v1/projects/demo/1.0").json()["result"]["commands"] == ["demo"]
    assert client.get("/at/12/v1/commands/demo").headers["location"] == "../../../12.12/v1/commands/demo"


def test_import_has_candidates_with_reasons(client: Client, published: Published):
    [found] = client.get("/v1/owners/yaml.nodes.ScalarNode").json()["results"]
    assert (found["import"], found["module"], found["serial"]) == (
        "yaml.nodes.ScalarNode",
        "yaml.nodes",
        published.index.serial,
    )
    [yaml] = client.get("/v1/owners/yaml").json()["results"]
    assert [(candidate["rank"], candidate["project"]) for candidate in yaml["candidates"]] == [
        (1, "PyYAML"),
        (2, "yaml-copy"),
    ]
    assert yaml["candidates"][0]["reasons"]["dependents"] == 2
    [first] = client.get("/v1/owners/yaml?limit=1").json()["results"]
    assert first["candidates"] == yaml["candidates"][:1]
    [unknown] = client.get("/v1/owners/nothing").json()["results"]
    assert (unknown["module"], unknown["candidates"]) == (None, [])


def test_imports_are_answered_in_order_also_at_a_serial(client: Client, published: Published):
    names = ["demo.new", "nothing", "yaml", "yaml"]
    latest = client.post("/v1/owners", {"imports": names}).json()["results"]
    assert [one["import"] for one in latest] == names
    serial = published.index.serial
    past = client.post(f"/at/{serial}.{serial}/v1/owners", {"imports": names}).json()["results"]
    assert past == latest


def test_too_many_or_too_long_imports_are_a_problem(client: Client):
    response = client.post("/v1/owners", {"imports": ["a"] * 5_001})
    assert (response.status_code, response.json()["type"]) == (413, "/docs#too-large")
    assert (response.json()["parameter"], response.json()["accepts"]) == ("body", "at most 5,000 items")
    assert client.post("/v1/owners?limit=21", {"imports": ["a"]}).json()["parameter"] == "limit"
    assert client.post("/v1/owners", {"imports": ["a" * 1_001]}).json()["parameter"] == "imports"
    assert client.get("/v1/owners/yaml?limit=0").json()["parameter"] == "limit"
    assert client.get("/v1/owners/" + "a" * 1_001).json()["parameter"] == "name"


def test_five_thousand_imports_are_answered(client: Client):
    names = [f"yaml.part{number}" for number in range(2_500)] + ["yaml"] * 2_500
    answer = client.post("/v1/owners", {"imports": names})
    assert answer.status_code == 200
    results = answer.json()["results"]
    assert [result["import"] for result in results] == names
    assert {result["module"] for result in results} == {"yaml"}


def test_batch_of_imports_has_only_the_best_candidates(changing: Published):
    for number in range(12):
        changing.add("wheel", f"more-{number}", "1.0", files={"yaml/__init__.py": ""})
    changing.publish()
    with changing.client() as client:
        [all_of_one] = client.get("/v1/owners/yaml").json()["results"]
        assert len(all_of_one["candidates"]) == 14
        for query, most in (("", 10), ("?limit=20", 14), ("?limit=1", 1)):
            results = client.post(f"/v1/owners{query}", {"imports": ["yaml", "demo"]}).json()["results"]
            assert results[0]["candidates"] == all_of_one["candidates"][:most]


def sha256_of(client: Client, filename: str) -> str:
    files = [
        file for release in client.get("/v1/projects/demo").json()["result"]["releases"] for file in release["files"]
    ]
    return str(next(file["sha256"] for file in files if file["filename"] == filename))


def test_file_is_found_by_its_hash(client: Client, published: Published):
    sha256 = sha256_of(client, "demo-1.0.tar.gz")
    [found] = client.get(f"/v1/hashes/{sha256.upper()}").json()["results"]
    assert (found["filename"], found["project"], found["sha256"]) == ("demo-1.0.tar.gz", "demo", sha256)
    serial = found["live_since"]
    assert client.get(f"/at/{serial}.{serial}/v1/hashes/{sha256}").json()["results"] == [found]
    assert client.get(f"/at/{serial - 1}.{serial - 1}/v1/hashes/{sha256}").json()["results"] == []


def test_hashes_are_answered_in_order(client: Client, published: Published):
    names = ["demo-1.0.tar.gz", "demo-1.0-py3-none-any.whl"]
    hashes = [sha256_of(client, name) for name in names]
    serial = published.index.serial
    for at in ("", f"/at/{serial}.{serial}"):
        document = client.post(f"{at}/v1/hashes", {"hashes": [*hashes, "0" * 64, hashes[0]]}).json()
        assert [result["filename"] for result in document["results"]] == names


def test_catalog_pages_are_bound_to_one_epoch(changing: Published):
    with changing.catalog.write() as connection:
        connection.execute(update(distributions).values(sha256="ab" * 32))
    path = f"/v1/hashes/{'ab' * 32}?all=1"
    with changing.client() as client:
        whole = client.get(path).json()
        first = client.get(f"{path}&limit=1").json()
        rest = client.get(f"{path}&cursor={first['next']}").json()
        assert len(whole["results"]) > 2
        assert (first["epoch"], [*first["results"], *rest["results"]]) == (whole["epoch"], whole["results"])
        with changing.catalog.write() as connection:
            connection.execute(insert(epochs).values(serial=10, epoch=whole["epoch"] + 7))
        late = client.get(f"{path}&cursor={first['next']}")
        assert (late.status_code, late.json()["parameter"]) == (409, "cursor")
        assert client.get(path).json()["epoch"] == whole["epoch"] + 7


def test_invalid_or_too_many_hashes_are_problems(client: Client):
    assert client.get("/v1/hashes/xyz").json()["parameter"] == "sha256"
    assert client.post("/v1/hashes", {"hashes": ["xyz"]}).json()["parameter"] == "hashes"
    assert client.post("/v1/hashes", {"hashes": ["0" * 64] * 1_001}).status_code == 413
    assert client.post("/v1/hashes", {"hashes": [], "more": 1}).status_code == 400
    assert client.get("/v1/hashes").status_code == 405


PURLS = [
    "pkg:pypi/demo",
    "pkg:pypi/Demo@2.0",
    "pkg:pypi/demo@1.0?file_name=demo-1.0.tar.gz",
    "pkg:pypi/demo@9",
    "pkg:pypi/none",
    "pkg:npm/demo@1.0",
]


def test_package_urls_are_answered_in_order(client: Client, published: Published):
    results = client.post("/v1/purls", {"purls": PURLS}).json()["results"]
    assert [result["purl"] for result in results] == PURLS
    assert [(result["exists"], result["yanked"], len(result["files"])) for result in results] == [
        (True, False, 4),
        (True, True, 1),
        (True, False, 1),
        (False, None, 0),
        (False, None, 0),
        (False, None, 0),
    ]
    assert unnamed(results[-1]["error"], "pypi") == []
    serial = published.index.serial
    assert client.post(f"/at/{serial}.{serial}/v1/purls", {"purls": PURLS}).json()["results"] == results


def test_too_many_package_urls_are_a_problem(client: Client):
    assert client.post("/v1/purls", {"purls": ["pkg:pypi/demo"] * 1_001}).status_code == 413
    assert client.post("/v1/purls", {"purls": ["x" * 9_000_000]}).status_code == 413
