"""Serve an index with faults, and query it with a client that exposes them."""

import json
import xmlrpc.client
from collections.abc import Iterator
from contextlib import contextmanager

import requests

from pypi_assets.devindex.faults import FaultPlan
from pypi_assets.devindex.history import History
from pypi_assets.devindex.served_pages import V1_JSON
from pypi_assets.devindex.server import running

WHEEL, SDIST = "demo-1.0-py3-none-any.whl", "demo-1.0.tar.gz"


class Client:
    """A client of a served index that neither follows redirects nor retries."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.session = requests.Session()

    def get(self, path: str, timeout: float = 10, **headers: str) -> requests.Response:
        return self.session.get(
            f"{self.url.removesuffix('/simple/')}{path}",
            headers={"Accept": V1_JSON, **headers},
            allow_redirects=False,
            timeout=timeout,
        )

    def call(self, method: str, *arguments: object) -> object:
        with xmlrpc.client.ServerProxy(self.url.replace("/simple/", "/pypi"), allow_none=True) as proxy:
            return getattr(proxy, method)(*arguments)


@contextmanager
def served(history: History, plan: str) -> Iterator[Client]:
    with running(history.folder, faults=FaultPlan(plan)) as url:
        client = Client(url)
        with client.session:
            yield client


def fault(kind: str, **keys: object) -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in {"kind": kind, **keys}.items()]
    return "\n".join(["[[fault]]", *lines, ""])


def path_of(history: History, filename: str) -> str:
    return next(f"/packages/{path}" for path in history.state().files if path.endswith(f"/{filename}"))


def content_of(history: History, filename: str) -> bytes:
    return (history.folder / "files" / path_of(history, filename).removeprefix("/packages/")).read_bytes()
