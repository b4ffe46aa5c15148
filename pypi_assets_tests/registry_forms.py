"""Serve Simple indexes on loopback in the forms that multi-language package registries give them.

The forms follow the products' documentation and pages that users of the products have published. The products
themselves cannot run in tests.
"""

import base64
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote

from packaging.utils import canonicalize_name

from pypi_assets_tests.index.loopback import Answer, Request, serving

HTML = {"Content-Type": "text/html; charset=utf-8"}
LOGIN = ("reader", "hush")
ELSEWHERE = "https://public.example.org/simple/"
NOT_FOUND = Answer(404, b'{"error":"404 Not Found"}', {"Content-Type": "application/json"})


@dataclass(frozen=True)
class Form:
    """The pages of a registry below the server path `base`.

    `list_link` makes a project's address on the project list from the registry's URL and the project's name.
    `file_link` makes a file's address from the URL, the project's name, the filename and the SHA-256. `hash_name` is
    the algorithm of the URL fragment, or empty for no fragment. `missing` returns the response for an unknown project.
    If `is_normalized`, links contain normalized names.
    """

    product: str
    base: str
    list_link: Callable[[str, str], str]
    file_link: Callable[[str, str, str, str], str]
    title: str
    hash_name: str = "sha256"
    is_normalized: bool = True
    has_list: bool = True
    missing: Callable[[str], Answer] = lambda _: NOT_FOUND


def _elsewhere(project: str) -> Answer:
    return Answer(302, headers={"Location": f"{ELSEWHERE}{project}/"})


def _artifactory_file(_: str, project: str, filename: str, __: str) -> str:
    return f"../../{project}/{filename.split('-')[1]}/{filename}"


def _nexus_file(_: str, project: str, filename: str, __: str) -> str:
    return f"../../packages/{project}/{filename.split('-')[1]}/{filename}"


def _gitlab_project(base: str, project: str) -> str:
    return f"{base}simple/{project}"


def _gitlab_file(base: str, _: str, filename: str, sha256: str) -> str:
    return f"{base}files/{sha256}/{filename}"


def _folder(_: str, project: str) -> str:
    return f"{project}/"


_ARTIFACTORY = Form("Artifactory", "/artifactory/api/pypi/local/", _folder, _artifactory_file, "Simple Index")
_NEXUS = Form("Nexus", "/repository/hosted/", _folder, _nexus_file, "Simple index", is_normalized=False)
_GITLAB = Form(
    "GitLab", "/api/v4/projects/7/packages/pypi/", _gitlab_project, _gitlab_file, "Links for Group", missing=_elsewhere
)
FORMS = (
    _ARTIFACTORY,
    replace(_ARTIFACTORY, hash_name=""),
    _NEXUS,
    replace(_NEXUS, hash_name="md5"),
    _GITLAB,
    replace(_GITLAB, base="/api/v4/groups/7/-/packages/pypi/", is_normalized=False),
    replace(_GITLAB, base="/api/v4/projects/group%2Fproject/packages/pypi/", has_list=False),
)


@dataclass
class Registry:
    """A registry of the given form at `url` that requires LOGIN. `files` is by project, spelled as in its metadata."""

    form: Form
    url: str = ""
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)

    @property
    def url_with_login(self) -> str:
        return self.url.replace("://", f"://{':'.join(LOGIN)}@")

    def upload(self, project: str, path: Path) -> None:
        self.files.setdefault(project, {})[path.name] = path.read_bytes()

    def answer(self, request: Request) -> Answer:
        wanted = base64.b64encode(":".join(LOGIN).encode()).decode()
        if request.headers.get("authorization") != f"Basic {wanted}":
            return Answer(401, b"", {"WWW-Authenticate": 'Basic realm="Registry"'})
        inner = request.path.removeprefix(self.form.base)
        if inner == request.path:
            return NOT_FOUND
        folder, _, rest = inner.partition("/")
        if folder != "simple":
            return self._file(unquote(inner.rpartition("/")[2]))
        if not rest:
            return self._list()
        return self._page(unquote(rest.strip("/")))

    def _shown(self, project: str) -> str:
        return canonicalize_name(project) if self.form.is_normalized else project

    def _list(self) -> Answer:
        if not self.form.has_list:
            return NOT_FOUND
        links = (
            f'<a href="{self.form.list_link(self.url, self._shown(name))}" data-requires-python="">{name}</a><br/>'
            for name in self.files
        )
        return self._document(self.form.title, links)

    def _page(self, name: str) -> Answer:
        project = next((one for one in self.files if canonicalize_name(one) == canonicalize_name(name)), None)
        if project is None:
            return self.form.missing(name)
        return self._document(
            f"Links for {project}", (self._link(project, *one) for one in self.files[project].items())
        )

    def _link(self, project: str, filename: str, content: bytes) -> str:
        address = self.form.file_link(self.url, self._shown(project), filename, hashlib.sha256(content).hexdigest())
        if self.form.hash_name:
            address += f"#{self.form.hash_name}={hashlib.new(self.form.hash_name, content).hexdigest()}"
        return f'<a href="{address}" rel="internal" data-requires-python="&gt;=3.8">{filename}</a><br/>'

    def _document(self, title: str, links: Iterator[str]) -> Answer:
        body = f"<h1>{title}</h1>{''.join(links)}"
        return Answer(200, f"<html><head><title>{title}</title></head><body>{body}</body></html>".encode(), HTML)

    def _file(self, filename: str) -> Answer:
        for files in self.files.values():
            if filename in files:
                return Answer(200, files[filename], {"Content-Type": "application/octet-stream"})
        return NOT_FOUND


@contextmanager
def served_registry(form: Form) -> Iterator[Registry]:
    registry = Registry(form)
    with serving(registry.answer) as loopback:
        registry.url = loopback.url + form.base
        yield registry
