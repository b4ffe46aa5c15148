"""Our own kinds of index, as the conformance kit checks them: the changelog over devindex, and observed pages."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from packaging.utils import canonicalize_name

from pypi_assets.devindex.history import History
from pypi_assets.devindex.server import running
from pypi_assets.index.conformance import IndexConformance, Request, SiteAnswer, World, WorldFile
from pypi_assets.index.kinds import REGISTRY

JSON = "application/vnd.pypi.simple.v1+json"


@dataclass
class DevindexWorld(World):
    """A world that writes each step into the folder of a devindex, which answers the requests at `url`."""

    folder: Path = Path()
    url: str = ""
    history: History = field(init=False)

    def __post_init__(self) -> None:
        self.history = History(self.folder / "index")

    def put(self, name: str, file: WorldFile) -> None:
        super().put(name, file)
        path = self.folder / file.filename
        path.write_bytes(file.content)
        self.history.add(path, project=name, version=file.version)

    def yank(self, name: str, version: str, reason: str | None) -> None:
        super().yank(name, version, reason)
        if reason is None:
            self.history.unyank(name, version)
        else:
            self.history.yank(name, version, reason)

    def remove_file(self, name: str, filename: str) -> None:
        super().remove_file(name, filename)
        self.history.remove_file(filename)

    def remove_project(self, name: str) -> None:
        super().remove_project(name)
        self.history.remove_project(name)


class ChangelogConformance(IndexConformance):
    """The client of an index with a changelog, against devindex."""

    kind = REGISTRY["xmlrpc"]
    can_overwrite = False

    @contextmanager
    def new_world(self) -> Iterator[World]:
        with tempfile.TemporaryDirectory() as folder:
            world = DevindexWorld(folder=Path(folder))
            with running(world.folder / "index", page_rows=world.page_size) as url:
                world.url = url
                yield world

    def answer(self, world: World, request: Request) -> SiteAnswer | None:
        assert isinstance(world, DevindexWorld)
        connection = HTTPConnection(urlsplit(world.url).netloc, timeout=30)
        headers = {name: value for name, value in request.headers.items() if name != "accept-encoding"}
        try:
            connection.request(request.method, request.path, request.body, headers)
            answer = connection.getresponse()
            own = {"Content-Type", "Content-Length", "Connection", "Date", "Server", "Transfer-Encoding"}
            kept = {name: value for name, value in answer.getheaders() if name.title() not in own}
            return SiteAnswer(answer.read(), answer.headers["Content-Type"] or "", answer.status, kept)
        finally:
            connection.close()


class ObservedConformance(IndexConformance):
    """An index without serials, whose JSON pages are polled."""

    kind = REGISTRY["pages"]

    def answer(self, world: World, request: Request) -> SiteAnswer | None:
        match [unquote(part) for part in request.path.strip("/").split("/")]:
            case ["simple"]:
                return _json({"meta": {"api-version": "1.1"}, "projects": [{"name": name} for name in world.projects]})
            case ["simple", project] if (files := world.files(project)) is not None:
                shown = [_shown(project, file) for file in files.values()]
                return _json({"meta": {"api-version": "1.1"}, "name": canonicalize_name(project), "files": shown})
            case ["files", project, filename] if (file := world.file(project, filename)) is not None:
                return SiteAnswer(file.content, "application/octet-stream")
        return None


class HtmlConformance(ObservedConformance):
    """The same, with HTML pages."""

    def answer(self, world: World, request: Request) -> SiteAnswer | None:
        match [unquote(part) for part in request.path.strip("/").split("/")]:
            case ["simple"]:
                return _html("".join(f'<a href="{canonicalize_name(name)}/">{name}</a>' for name in world.projects))
            case ["simple", project] if (files := world.files(project)) is not None:
                links = (
                    f'<a href="{_url(project, file)}#sha256={file.sha256}"'
                    + ("" if file.yanked is None else f' data-yanked="{file.yanked}"')
                    + f">{file.filename}</a>"
                    for file in files.values()
                )
                return _html("".join(links))
        return super().answer(world, request)


def _json(value: object) -> SiteAnswer:
    return SiteAnswer(json.dumps(value).encode(), JSON)


def _html(links: str) -> SiteAnswer:
    head = '<!DOCTYPE html><html><head><meta name="pypi:repository-version" content="1.0"></head><body>'
    return SiteAnswer(f"{head}{links}</body></html>".encode(), "text/html; charset=utf-8")


def _url(project: str, file: WorldFile) -> str:
    return f"/files/{quote(project)}/{quote(file.filename)}"


def _shown(project: str, file: WorldFile) -> dict[str, object]:
    yanked = False if file.yanked is None else file.yanked or True
    return {
        "filename": file.filename,
        "url": _url(project, file),
        "hashes": {"sha256": file.sha256},
        "size": len(file.content),
        "yanked": yanked,
    }
