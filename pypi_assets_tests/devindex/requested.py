"""Requests of tests to a served index."""

import xmlrpc.client

import requests

from pypi_assets.devindex.served_pages import V1_JSON

JSON = {"Accept": V1_JSON}


WHEEL = "demo-1.0-py3-none-any.whl"


def file_urls(session: requests.Session, url: str, project: str = "demo") -> dict[str, str]:
    page = session.get(f"{url}{project}/", headers=JSON).json()
    return {file["filename"]: file["url"] for file in page["files"]}


def call(url: str, method: str, *arguments: object) -> object:
    with xmlrpc.client.ServerProxy(url.replace("/simple/", "/pypi"), allow_none=True) as proxy:
        return getattr(proxy, method)(*arguments)
