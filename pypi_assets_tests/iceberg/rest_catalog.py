"""A REST catalog on loopback with the requests that the tables need, over a catalog in an SQLite file."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from pyiceberg.catalog.rest import CreateTableRequest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.table import CommitTableRequest, Table


def _described(table: Table) -> dict[str, object]:
    metadata = json.loads(table.metadata.model_dump_json())
    return {"metadata-location": table.metadata_location, "metadata": metadata, "config": {}}


class _Handler(BaseHTTPRequestHandler):
    backend: SqlCatalog
    requests: list[str]

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _answer(self) -> None:
        size = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(size)
        self.requests.append(f"{self.command} {self.path}")
        try:
            status, answer = self._result(self.path.partition("?")[0].split("/")[2:], body)
        except NoSuchTableError as error:
            status, answer = 404, _error(404, "NoSuchTableException", str(error))
        except CommitFailedException as error:
            status, answer = 409, _error(409, "CommitFailedException", str(error))
        content = b"" if answer is None else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815 - names of the base class

    def _result(self, parts: list[str], body: bytes) -> tuple[int, dict[str, object] | None]:
        backend = self.backend
        match self.command, parts:
            case "GET", ["config"]:
                return 200, {"defaults": {}, "overrides": {}}
            case "HEAD", ["namespaces", name]:
                return (204 if backend.namespace_exists(name) else 404), None
            case "POST", ["namespaces"]:
                (name,) = json.loads(body)["namespace"]
                if backend.namespace_exists(name):
                    return 409, _error(409, "AlreadyExistsException", name)
                backend.create_namespace(name)
                return 200, {"namespace": [name], "properties": {}}
            case "POST", ["namespaces", name, "tables"]:
                asked = CreateTableRequest.model_validate_json(body)
                spec = asked.partition_spec or UNPARTITIONED_PARTITION_SPEC
                made = backend.create_table(
                    (name, asked.name), asked.table_schema, asked.location, spec, properties=asked.properties
                )
                return 200, _described(made)
            case "GET", ["namespaces", name, "tables", table]:
                return 200, _described(backend.load_table((name, table)))
            case "POST", ["namespaces", name, "tables", table]:
                commit = CommitTableRequest.model_validate_json(body)
                committed = backend.commit_table(backend.load_table((name, table)), commit.requirements, commit.updates)
                return 200, {"metadata-location": committed.metadata_location, **_metadata(committed.metadata)}
            case "DELETE", ["namespaces", name, "tables", table]:
                backend.drop_table((name, table))
                return 204, None
        return 404, _error(404, "NotFoundException", self.path)


def _metadata(metadata: object) -> dict[str, object]:
    return {"metadata": json.loads(metadata.model_dump_json())}  # type: ignore[attr-defined]


def _error(code: int, kind: str, message: str) -> dict[str, object]:
    return {"error": {"message": message, "type": kind, "code": code}}


@contextmanager
def rest_catalog(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Serve an empty catalog, and yield its URL and the list of its requests."""
    backend = SqlCatalog("rest", uri=f"sqlite:///{folder / 'rest.sqlite'}", warehouse=folder.as_uri())
    requests: list[str] = []
    handler = type("Handler", (_Handler,), {"backend": backend, "requests": requests})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", requests
        finally:
            server.shutdown()
            thread.join()
            backend.close()
