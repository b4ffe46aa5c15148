"""How fast is a full crawl, end to end, beside a bare loop of the same client that fetches the same bytes?

    python -m benchmarks.full_crawl [--files 2000] [--connections 8]

Serves generated wheels from a devindex in a process of its own, on loopback. The baseline fetches every page and every
file with as many connections and does nothing with them; it is measured in the same run, before and after.
"""

import argparse
import io
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pypi_assets.assembly import catalog_from, crawler_from, index_from, readers_from, storage_from
from pypi_assets.catalog.answers import catalog_status
from pypi_assets.crawl.full import crawl_full
from pypi_assets.devindex.history import History
from pypi_assets.dumps.full import full_dump
from pypi_assets.index.client import IndexClient
from pypi_assets.index.models import IndexFile, ProjectPage
from pypi_assets.leveldbs.publish import build_version
from pypi_assets.settings import load_settings
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.builders import make_wheel

FILES_PER_PROJECT = 4
MODULES = 20


def generate(folder: Path, files: int) -> None:
    """Fills an index with wheels of `MODULES` modules each, `FILES_PER_PROJECT` versions a project."""
    built = folder / "built"
    built.mkdir()
    history = History(folder / "index")
    for number in range(files):
        name, version = f"project-{number // FILES_PER_PROJECT}", f"{number % FILES_PER_PROJECT}.0"
        modules = {f"package{number // FILES_PER_PROJECT}/module{m}.py": f"# {'x' * 300}\n" for m in range(MODULES)}
        history.add(make_wheel(built, name, version, files=modules, requires_dist=["requests>=2", "attrs"]))


def bare_loop(client: IndexClient, connections: int) -> tuple[float, int, int]:
    """Seconds, files and bytes of fetching every page and every file, and doing nothing with them."""
    started = time.monotonic()

    def fetch(file: IndexFile) -> int:
        return client.fetch_file(file.url, io.BytesIO(), sha256=file.sha256, size=file.size, max_bytes=10**9).bytes

    with ThreadPoolExecutor(connections) as pool:
        pages = pool.map(client.project_page, [project.normalized for project in client.listing().projects])
        files = [file for page in pages if isinstance(page, ProjectPage) for file in page.files]
        fetched = sum(pool.map(fetch, files))
    return time.monotonic() - started, len(files), fetched


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--connections", type=int, default=8)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate(folder, options.files)
        command = [Path(sys.executable).with_name("pypi-assets"), "devindex", "serve", folder / "index"]
        with subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            settings = load_settings(
                home=folder / "home", index_url=url, requests_per_second=10_000, max_connections=options.connections
            )
            catalog = catalog_from(settings)
            client = index_from(settings, catalog)
            before, files, fetched = bare_loop(client, options.connections)
            started = time.monotonic()
            with readers_from(settings) as readers:
                crawl_full(crawler_from(settings, client, catalog, storage_from(settings), readers))
            crawl = time.monotonic() - started
            after, _, _ = bare_loop(client, options.connections)
            client.close()
            server.terminate()
        assert catalog_status(catalog).outcomes["data"] == files
        bare = (before + after) / 2
        storage = open_storage((folder / "storage").as_uri())
        rows = [("bare loop (mean of two)", bare), ("full crawl", crawl)]
        for what, work in (
            ("full dump, 16 shards", lambda: full_dump(catalog, storage, 16)),
            ("modules from scratch", lambda: build_version("modules", storage=storage, catalog=catalog)),
            ("depgraph from scratch", lambda: build_version("depgraph", storage=storage, catalog=catalog)),
        ):
            started = time.monotonic()
            work()
            rows.append((what, time.monotonic() - started))
        catalog.close()
    print(f"{files} wheels, {fetched / 1e6:.1f} MB, {options.connections} connections, {os.cpu_count()} cores")
    print(f"{'':26}{'seconds':>9}{'files/s':>9}{'ratio':>7}")
    for what, seconds in rows:
        ratio = f"{bare / seconds:7.2f}" if what in {"bare loop (mean of two)", "full crawl"} else ""
        print(f"{what:26}{seconds:9.2f}{files / seconds:9.0f}{ratio}")


if __name__ == "__main__":
    main()
