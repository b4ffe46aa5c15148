"""Clients of servers on this machine that neither pause nor wait, and what such a server shows."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pypi_assets.index.client import IndexClient
from pypi_assets.index.rate import RateLimit, Rates
from pypi_assets.index.transport import Retries
from pypi_assets_tests.index.loopback import Answer

JSON = {"Content-Type": "application/vnd.pypi.simple.v1+json"}
META = {"api-version": "1.4", "_last-serial": 7}
PAGE = Answer(200, json.dumps({"meta": META, "name": "demo", "files": []}).encode(), JSON)


@contextmanager
def unhurried_client(root_url: str, **options: Any) -> Iterator[IndexClient]:
    """A client of the index at `root_url`, above its /simple/."""
    settings: dict[str, Any] = {
        "changelog_url": f"{root_url}/pypi",
        "rates": Rates(RateLimit(math.inf), RateLimit(math.inf)),
        "retries": Retries(1),
    }
    with IndexClient(options.pop("index_url", f"{root_url}/simple/"), **(settings | options)) as client:
        yield client
