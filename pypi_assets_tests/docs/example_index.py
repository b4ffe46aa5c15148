"""The example index of docs/: small files under well-known names, with events from 2026-03-01 on.

`python -m pypi_assets_tests.docs.example_index FOLDER` serves it until interrupted, so that you can try a command
before you add it to a page. It prints the settings to use.
"""

import json
import sys
import time
import zipfile
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pypi_assets_tests.builders import make_sdist, make_wheel
from pypi_assets_tests.served_index import ServedIndex, served_index

BEGAN = datetime(2026, 3, 1, 9, tzinfo=UTC)
"""The upload time of the first file. Each further event is a day later."""
CONSOLE = "[console_scripts]\n"

WHEELS: tuple[tuple[str, str, tuple[str, ...], tuple[str, ...], str], ...] = (
    ("PyYAML", "6.0.2", ("yaml/__init__.py", "yaml/nodes.py", "_yaml/__init__.py"), (), ""),
    ("yaml-copy", "1.0", ("yaml/__init__.py",), (), ""),
    ("idna", "3.10", ("idna/__init__.py", "idna/core.py"), (), ""),
    ("urllib3", "1.26.20", ("urllib3/__init__.py",), ("idna>=2.0.0; extra == 'secure'",), ""),
    ("urllib3", "2.5.0", ("urllib3/__init__.py",), (), ""),
    ("six", "1.17.0", ("six.py",), (), ""),
    ("python-dateutil", "2.9.0", ("dateutil/__init__.py", "dateutil/parser.py"), ("six>=1.5",), ""),
    ("requests", "2.32.3", ("requests/__init__.py",), ("idna<4,>=2.5", "urllib3<3,>=1.21.1"), ""),
    ("httpie", "3.2.4", ("httpie/__init__.py",), ("requests>=2.22",), "http = httpie.__main__:main\n"),
    ("tqdm", "4.67.1", ("tqdm/__init__.py",), ("requests; extra == 'slack'",), "tqdm = tqdm.cli:main\n"),
    ("Werkzeug", "3.1.3", ("werkzeug/__init__.py",), (), ""),
    ("Flask", "3.1.0", ("flask/__init__.py",), ("Werkzeug>=3.1",), "flask = flask.cli:main\n"),
    ("opencv-python", "4.12.0", ("cv2/__init__.py", "cv2/gapi.py"), (), ""),
    ("opencv-python-headless", "4.12.0", ("cv2/__init__.py", "cv2/gapi.py"), (), ""),
    ("google-cloud-storage", "3.1.0", ("google/cloud/storage/__init__.py", "google/cloud/storage/blob.py"), (), ""),
    ("pre-commit", "4.3.0", ("pre_commit/__init__.py",), ("pyyaml>=5.1",), "pre-commit = pre_commit.main:main\n"),
    ("old-client", "1.0", ("old_client.py",), ("urllib3<2",), ""),
    ("old-app", "2.0", ("old_app.py",), ("old-client",), ""),
    ("orchard", "1.0", ("orchard.py",), ("requests",), ""),
    ("PyYAML", "6.0.3", ("yaml/__init__.py", "yaml/nodes.py", "_yaml/__init__.py"), (), ""),
    ("requests", "2.32.5", ("requests/__init__.py",), ("idna<4,>=2.5", "urllib3<3,>=1.21.1"), ""),
)
"""Projects, versions, files, requirements and console scripts, in the order of their upload."""


def fill(index: ServedIndex) -> None:
    """Upload all files and yank a release. Then orchard 1.1 has no solution, and the yank of 1.0 breaks its users."""
    at = BEGAN
    for name, version, files, requires, scripts in WHEELS:
        options = {"files": dict.fromkeys(files, ""), "requires_dist": requires}
        index.wheel(name, version, at=at, entry_points=CONSOLE + scripts if scripts else None, **options)
        at += timedelta(days=1)
    index.history.yank("requests", "2.32.3", "use 2.32.5", at=at)
    requires = ("urllib3<1.21", "requests")
    index.wheel("orchard", "1.1", at=at + timedelta(days=1), files={"orchard.py": ""}, requires_dist=requires)
    index.history.yank("orchard", "1.0", "use 1.1", at=at + timedelta(days=2))


def write_files(folder: Path, index: ServedIndex) -> None:
    """Write the files that commands on the pages name into `folder`."""
    texts = {
        "requirements.txt": "flask\npyyaml\nrequests\n",
        "requirements.in": "orchard\n",
        "lock.txt": "PyYAML==6.0.3\nopencv-python==4.12.0\nopencv-python-headless==4.12.0\n",
        "imports.txt": "yaml\ncv2\n",
        "names.txt": "yaml\nidna\n",
        "pyproject.toml": '[project]\nname = "app"\nversion = "1.0"\ndependencies = ["flask"]\n',
        "rules.toml": '[[rule]]\nprojects = ["tqdm"]\naccept = false\n',
        "src/app.py": "import json\nimport yaml\nfrom dateutil import parser\n",
    }
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "dist").mkdir()
    make_wheel(folder / "dist", "demo", "1.0")
    make_sdist(folder / "dist", "demo", "1.0")
    write_advisories(folder / "all.zip", {"PYSEC-2026-1": ("urllib3", ["1.26.20"])}.items())
    for name in ("six-1.17.0-py3-none-any.whl", "requests-2.32.5-py3-none-any.whl"):
        (folder / name).write_bytes((index.folder / "built" / name).read_bytes())


def write_advisories(path: Path, advisories: Iterable[tuple[str, tuple[str, list[str]]]]) -> None:
    """Write advisories as OSV publishes them: a zip with a JSON file for each."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, (project, versions) in advisories:
            affected = [{"package": {"ecosystem": "PyPI", "name": project}, "versions": versions}]
            record = {"id": name, "modified": "2026-03-20T00:00:00Z", "affected": affected}
            archive.writestr(f"{name}.json", json.dumps(record))


def main(folder: Path) -> None:
    with served_index(folder) as index:
        fill(index)
        write_files(folder, index)
        sys.stdout.write(f"export PYPI_ASSETS_INDEX_URL={index.url} PYPI_ASSETS_HOME={folder / 'home'}\n")
        sys.stdout.flush()
        while True:
            time.sleep(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
