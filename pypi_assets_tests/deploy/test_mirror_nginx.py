"""A mirror of what nginx serves as docs/mirror.md describes it: static files, and nothing that is private."""

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pypi_assets.mirror.errors import VanishedError
from pypi_assets.mirror.sources import open_source, small_file
from pypi_assets_tests.mirror.conftest import Mirrors, Origin, assert_whole, contents
from pypi_assets_tests.mirror.conftest import mirrors as mirrors
from pypi_assets_tests.mirror.conftest import origin as origin

pytestmark = pytest.mark.deploy
ROOT = Path(__file__).parents[2]
_CONFIGURATION = """
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    gzip on;
    gzip_types application/octet-stream application/json text/plain;
    server {{
        listen 127.0.0.1:{port};
        {documented}
    }}
}}
"""


@contextmanager
def nginx(storage: Path, folder: Path) -> Iterator[str]:
    """The nginx of the page over a storage; yields the URL of its root."""
    [documented] = re.findall(r"```nginx\n(.*?)```", (ROOT / "docs" / "mirror.md").read_text(), re.DOTALL)
    documented = documented.replace("/srv/pypi-assets/storage/", f"{storage}/")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    configuration = folder / "nginx.conf"
    configuration.write_text(_CONFIGURATION.format(folder=folder, port=port, documented=documented))
    with subprocess.Popen([shutil.which("nginx") or "nginx", "-c", str(configuration), "-e", "stderr"]) as process:
        try:
            for _ in range(200):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}/storage"
        finally:
            process.terminate()


def test_what_nginx_serves_as_the_page_describes_is_mirrored(origin: Origin, mirrors: Mirrors, tmp_path: Path) -> None:
    assert origin.storage.root
    origin.storage.put("extracts/aa/secret.pack", b"not for mirrors")
    with nginx(origin.storage.root, tmp_path) as url:
        mirror = mirrors.of(url)
        mirror.run()
        assert contents(mirror.storage) == contents(origin.storage)
        assert_whole(mirror.storage)
        assert mirror.run().files == 0
        with pytest.raises(VanishedError):
            small_file(open_source(url), "extracts/aa/secret.pack", 100)
