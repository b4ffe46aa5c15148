"""Run an S3 server on loopback with one empty bucket."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import Request, urlopen

import boto3
import pytest
from moto.server import ThreadedMotoServer

BUCKET = "assets"


@contextmanager
def s3_server(environment: pytest.MonkeyPatch) -> Iterator[str]:
    """Run the server, set the AWS_... variables of `environment` for it, and yield its URL."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        with urlopen(Request(f"{url}/moto-api/reset", method="POST")):  # all servers in one process share their objects
            pass
        for name, value in {
            "AWS_ENDPOINT_URL": url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
        }.items():
            environment.setenv(name, value)
        client = boto3.client("s3", endpoint_url=url, region_name="us-east-1")
        client.create_bucket(Bucket=BUCKET)
        client.close()
        yield url
    finally:
        server.stop()
