"""A remote store and a remote database are reached over TLS if their CA is configured, and rejected otherwise."""

import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import psycopg2
import pytest
import trustme
from botocore.exceptions import SSLError
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from pypi_assets.catalog.database import CatalogError, open_catalog
from pypi_assets.storage.store import StorageError, open_storage

pytestmark = pytest.mark.deploy
BUCKET = "assets"
SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
"""PostgreSQL servers of Debian. The one installed by pip does not support TLS."""


@dataclass(frozen=True)
class Certificates:
    """`server` has the key and the certificate of `localhost`, signed by `ca`; `other` is another CA."""

    ca: Path
    other: Path
    server: Path


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    made = Certificates(tmp_path / "ca.pem", tmp_path / "other.pem", tmp_path / "server.pem")
    ca = trustme.CA()
    ca.cert_pem.write_to_path(str(made.ca))
    trustme.CA().cert_pem.write_to_path(str(made.other))
    ca.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(made.server))
    return made


@pytest.fixture
def store(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run a store over TLS, and name it in the environment as `deploy/.env` does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server)
    application = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, application, threaded=True, ssl_context=context)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name in ("AWS_ALLOW_HTTP", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "AWS_ENDPOINT_URL": f"https://localhost:{server.port}",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
    }.items():
        monkeypatch.setenv(name, value)
    yield
    server.shutdown()


@pytest.mark.usefixtures("store")
def test_store_is_verified_by_its_ca_file(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    trust(certificates.ca, monkeypatch)
    boto3.client("s3").create_bucket(Bucket=BUCKET)  # as Dagster writes logs of runs to it
    open_storage(f"s3://{BUCKET}/root").put("name", b"content")
    assert open_storage(f"s3://{BUCKET}/root").get("name") == b"content"
    trust(certificates.other, monkeypatch)
    with pytest.raises(StorageError, match=r"UnknownIssuer.*SSL_CERT_FILE"):
        open_storage(f"s3://{BUCKET}/root").get("name")
    with pytest.raises(SSLError):
        boto3.client("s3").list_buckets()


def trust(ca: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SSL_CERT_FILE", "AWS_CA_BUNDLE"):
        monkeypatch.setenv(name, str(ca))


@pytest.fixture
def database(certificates: Certificates, tmp_path: Path) -> Iterator[str]:
    """Return the URL, without parameters, of a PostgreSQL that accepts only connections over TLS."""
    user = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}  # PostgreSQL does not run as root
    folder = Path(f"/tmp/pypi-assets-tls-{os.getpid()}")
    folder.mkdir(0o755)
    run: dict[str, Any] = {
        "stdout": subprocess.DEVNULL,
        "env": {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        **user,
    }
    try:
        if user:
            shutil.chown(folder, **user)
        data = folder / "data"
        initdb = [SERVERS[-1].with_name("initdb"), "-A", "trust", "-U", "postgres", data]
        subprocess.run(initdb, check=True, **run)
        key = data / "server.pem"
        shutil.copy(certificates.server, key)
        key.chmod(0o600)
        if user:
            shutil.chown(key, **user)
        (data / "pg_hba.conf").write_text("hostssl all all 127.0.0.1/32 trust\n")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        options = {"ssl": "on", "ssl_cert_file": key, "ssl_key_file": key, "unix_socket_directories": folder}
        options |= {"listen_addresses": "127.0.0.1", "port": port}
        settings = " ".join(f"-c {name}={value}" for name, value in options.items())
        control = [SERVERS[-1].with_name("pg_ctl"), "-D", data, "-w", "-t", "120"]
        subprocess.run([*control, "-o", settings, "-l", data / "log", "start"], check=True, **run)
        try:
            yield f"postgresql://postgres@localhost:{port}/postgres"
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], check=True, **run)
    finally:
        shutil.rmtree(folder)


@pytest.mark.skipif(not SERVERS or sys.platform != "linux", reason="PostgreSQL is not installed from system packages")
def test_database_is_verified_by_its_ca_file(certificates: Certificates, database: str) -> None:
    url = f"{database}?sslmode=verify-full&sslrootcert={certificates.ca}"
    open_catalog(url).close()
    psycopg2.connect(url).close()  # as Dagster connects to its database
    wrong = f"{database}?sslmode=verify-full&sslrootcert={certificates.other}"
    with pytest.raises(CatalogError, match="certificate verify failed"):
        open_catalog(wrong)
    with pytest.raises(CatalogError, match="no encryption"):
        open_catalog(f"{database}?sslmode=disable")
    with pytest.raises(CatalogError, match="does not match host name"):
        open_catalog(url.replace("localhost", "127.0.0.1"))
