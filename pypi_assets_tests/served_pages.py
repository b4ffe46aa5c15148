"""Serve an index without changelog and serials on loopback: pages in HTML or JSON, over real files in a folder."""

import hashlib
import html
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, unquote

from packaging.utils import canonicalize_name

from pypi_assets_tests.builders import make_sdist, make_wheel

JSON = "application/vnd.pypi.simple.v1+json"
HTML = "text/html; charset=utf-8"
Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Upload:
    """A file of the index: its content, and the reason if it is yanked."""

    content: bytes
    yanked: str | None = None


@dataclass
class ServedPages:
    """The current index. `answers` may return another response than the index's own, by path.

    If `speaks_json`, pages can be JSON. If `has_hashes`, files have hashes, which are only MD5 with `weak_hashes`.
    `requests` has the requested paths.
    """

    folder: Path
    url: str = ""
    projects: dict[str, dict[str, Upload]] = field(default_factory=dict)
    speaks_json: bool = False
    has_hashes: bool = True
    weak_hashes: bool = False
    has_list: bool = True
    answers: Callable[[str], Answer | None] = lambda _: None
    requests: list[str] = field(default_factory=list)

    def wheel(self, name: str, version: str, **options: object) -> str:
        """Upload a wheel, which may replace one of the same name. Return its filename."""
        return self._upload(name, make_wheel(self._built(), name, version, **options))  # type: ignore[arg-type]

    def sdist(self, name: str, version: str, **options: object) -> str:
        return self._upload(name, make_sdist(self._built(), name, version, **options))  # type: ignore[arg-type]

    def _built(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder

    def _upload(self, name: str, path: Path) -> str:
        self.projects.setdefault(canonicalize_name(name), {})[path.name] = Upload(path.read_bytes())
        return path.name

    def shown(self) -> set[tuple[str, bool]]:
        """Return the files on all current pages: (filename, is yanked)."""
        return {(name, upload.yanked is not None) for files in self.projects.values() for name, upload in files.items()}

    def answer(self, path: str, accept: str) -> Answer:
        """Return the index's response to a GET of `path`."""
        if (given := self.answers(path)) is not None:
            return given
        parts = [unquote(part) for part in path.strip("/").split("/")]
        as_json = self.speaks_json and JSON in accept
        if parts == ["simple"] and self.has_list:
            return self._list(as_json=as_json)
        if len(parts) == 2 and parts[0] == "simple" and parts[1] in self.projects:
            return self._page(parts[1], as_json=as_json)
        if len(parts) == 3 and parts[0] == "files" and parts[2] in self.projects.get(parts[1], {}):
            return 200, {"Content-Type": "application/octet-stream"}, self.projects[parts[1]][parts[2]].content
        return 404, {"Content-Type": HTML}, b"<h1>Not Found</h1>"

    def _list(self, *, as_json: bool) -> Answer:
        names = sorted(self.projects)
        if as_json:
            document = {"meta": {"api-version": "1.0"}, "projects": [{"name": name} for name in names]}
            return 200, {"Content-Type": JSON}, json.dumps(document).encode()
        links = "".join(f'<a href="/simple/{quote(name)}/">{html.escape(name)}</a><br>\n' for name in names)
        body = f"<!DOCTYPE html><html><head><title>Simple index</title></head><body>{links}</body></html>"
        return 200, {"Content-Type": HTML}, body.encode()

    def _page(self, project: str, *, as_json: bool) -> Answer:
        files = self.projects[project]
        if as_json:
            entries = [self._entry(project, name, upload) for name, upload in files.items()]
            document = {"meta": {"api-version": "1.0"}, "name": project, "files": entries}
            return 200, {"Content-Type": JSON}, json.dumps(document).encode()
        links = "".join(self._link(project, name, upload) for name, upload in files.items())
        body = f"<!DOCTYPE html><html><head><title>Links for {project}</title></head><body>{links}</body></html>"
        return 200, {"Content-Type": HTML}, body.encode()

    def _entry(self, project: str, name: str, upload: Upload) -> dict[str, object]:
        hashes = {"sha256": hashlib.sha256(upload.content).hexdigest()} if self.has_hashes else {}
        yanked = False if upload.yanked is None else upload.yanked or True
        return {"filename": name, "url": f"/files/{project}/{name}", "hashes": hashes, "yanked": yanked}

    def _link(self, project: str, name: str, upload: Upload) -> str:
        algorithm = "md5" if self.weak_hashes else "sha256"
        fragment = f"#{algorithm}={hashlib.new(algorithm, upload.content).hexdigest()}" if self.has_hashes else ""
        yanked = "" if upload.yanked is None else f' data-yanked="{html.escape(upload.yanked)}"'
        return f'<a href="../../files/{project}/{quote(name)}{fragment}"{yanked}>{html.escape(name)}</a><br>\n'


@contextmanager
def served_pages(folder: Path) -> Iterator[ServedPages]:
    """Serve an index until the block ends. Its pages have ETags and answer conditional requests."""
    index = ServedPages(folder)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            index.requests.append(path)
            status, headers, body = index.answer(path, self.headers.get("Accept", ""))
            tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
            if status == 200 and self.headers.get("If-None-Match") == tag:
                status, body = 304, b""
            self.send_response(status)
            for name, value in {**headers, "ETag": tag, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index.url = f"http://127.0.0.1:{server.server_address[1]}/simple/"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
