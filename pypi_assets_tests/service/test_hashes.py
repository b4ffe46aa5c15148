from sqlalchemy import insert, update

from pypi_assets.catalog.tables import distributions, epochs
from pypi_assets_tests.service.published import Client, Published


def sha256_of(client: Client, filename: str) -> str:
    files = [file for one in client.get("/v1/projects/demo").json()["result"]["releases"] for file in one["files"]]
    return str(next(file["sha256"] for file in files if file["filename"] == filename))


def test_a_file_is_found_by_its_hash(client: Client, published: Published):
    sha256 = sha256_of(client, "demo-1.0.tar.gz")
    [found] = client.get(f"/v1/hashes/{sha256.upper()}").json()["results"]
    assert (found["filename"], found["project"], found["sha256"]) == ("demo-1.0.tar.gz", "demo", sha256)
    serial = found["live_since"]
    assert client.get(f"/at/{serial}.{serial}/v1/hashes/{sha256}").json()["results"] == [found]
    assert client.get(f"/at/{serial - 1}.{serial - 1}/v1/hashes/{sha256}").json()["results"] == []


def test_several_are_answered_in_their_order(client: Client, published: Published):
    names = ["demo-1.0.tar.gz", "demo-1.0-py3-none-any.whl"]
    hashes = [sha256_of(client, name) for name in names]
    serial = published.index.serial
    for at in ("", f"/at/{serial}.{serial}"):
        found = client.post(f"{at}/v1/hashes", {"hashes": [*hashes, "0" * 64, hashes[0]]}).json()
        assert [one["filename"] for one in found["results"]] == names


def test_pages_of_the_catalog_are_of_one_epoch(changing: Published):
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


def test_what_is_no_hash_and_too_many_are_problems(client: Client):
    assert client.get("/v1/hashes/xyz").json()["parameter"] == "sha256"
    assert client.post("/v1/hashes", {"hashes": ["xyz"]}).json()["parameter"] == "body"
    assert client.post("/v1/hashes", {"hashes": ["0" * 64] * 1_001}).status_code == 413
    assert client.post("/v1/hashes", {"hashes": [], "more": 1}).status_code == 400
    assert client.get("/v1/hashes").status_code == 405
