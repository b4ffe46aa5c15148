"""How far answers go, and what else the service reports about itself."""

from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets_tests.service.published import Client, Published, client_of


def test_it_reports_how_far_answers_and_the_catalog_are(client: Client, published: Published):
    found = client.get("/v1/status").json()
    serial = published.index.serial
    assert (found["serial"], found["lag_serials"], found["lag_seconds"]) == (serial, 0, 0.0)
    assert found["datasets"]["versions"].keys() == DATASETS.keys()
    assert found["catalog"] == {
        "serial": serial,
        "index_url": published.index.url,
        "exact_from": 0,
        "index_serial": serial,
        "followed_projects": None,
    }
    assert found["problems"] == {}


def test_it_is_ready_once_there_is_something_to_answer_from(published: Published, tmp_path):
    with published.service(home=tmp_path / "empty") as service, client_of(service) as client:
        assert client.get("/healthz").json() == {"status": "alive"}
        answer = client.get("/readyz")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert client.get("/v1/modules/yaml").status_code == 503
        found = client.get("/v1/status").json()
        assert (found["serial"], found["catalog"]) == (None, None)
        assert found["problems"].keys() == {"storage", "catalog"}
        assert client.get("/v1/status").headers["x-pypi-last-serial"] == "0"
    with published.client() as client:
        assert client.get("/readyz").json() == {"status": "ready"}
