"""The application as a whole: what each answer has, whatever its route."""

import asyncio
import gc

from pypi_assets.service.app import create_app
from pypi_assets_tests.service.published import Client, Published


def test_every_answer_has_the_serial_and_can_be_read_by_other_sites(client: Client, published: Published):
    for path in ("/v1/modules/yaml", "/v1/modules/unknown", "/nowhere", "/v1/modules/yaml?wrong=1"):
        headers = client.get(path).headers
        assert headers["x-pypi-last-serial"] == str(published.index.serial)
        assert headers["access-control-allow-origin"] == "*"


def test_a_request_that_names_what_it_holds_is_answered_without_a_body(client: Client):
    first = client.get("/v1/modules/yaml")
    again = client.get("/v1/modules/yaml", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    since = client.get("/v1/modules/yaml", headers={"If-Modified-Since": first.headers["last-modified"]})
    assert since.status_code == 304


def test_head_has_the_headers_alone(client: Client):
    got, head = client.get("/v1/modules/yaml"), client.request("HEAD", "/v1/modules/yaml")
    assert head.content == b""
    assert head.headers["content-length"] == got.headers["content-length"]
    assert head.headers["etag"] == got.headers["etag"]


def test_the_garbage_collector_seldom_looks_and_at_little_while_the_application_runs(published: Published):
    async def run() -> None:
        async with app.router.lifespan_context(app):
            assert gc.get_threshold()[0] > 5_000
            assert gc.get_freeze_count() > 10_000

    thresholds = gc.get_threshold()
    with published.service() as service:
        app = create_app(service)
        try:
            asyncio.run(run())
        finally:
            gc.set_threshold(*thresholds)
            gc.unfreeze()
