"""Check that another Python makes the same records of the same files: mutate files on one, re-read them on another.

    python3.11 -m pypi_assets_tests.distributions.same_records write FILE [--seconds N] [--seed N]
    python3.13 -m pypi_assets_tests.distributions.same_records compare FILE

`write` mutates the odd files and their sources, and writes each file with its record. `compare` makes the records again
and prints the ones that differ. It exits with 1 if there are any. `digests` writes the digests that
test_same_records.py compares. Run it after changing the contents of records.
"""

import argparse
import hashlib
import io
import json
import platform
import re
import sys
import time
from collections.abc import Container, Iterator
from pathlib import Path
from random import Random

import msgspec

from pypi_assets.distributions.reader import read_distribution
from pypi_assets.distributions.record_building import record_to_json
from pypi_assets_tests.distributions import fuzz_targets
from pypi_assets_tests.distributions.hostile import CASES
from pypi_assets_tests.distributions.odd_files import COOKIES, NEW, ODD_FILES, OLD, REQUIREMENTS, SCRIPTS, sdist, wheel
from pypi_assets_tests.distributions.setup_scripts import IMPORTS

DIGESTS = Path(__file__).parents[1] / "data" / "record-digests.json"
MAX_KNOWN_BYTES = 20_000
_NUMBER = re.compile(r"[0-9]+")
_PIECES = (
    *(
        "f'",
        "'",
        '"',
        "'''",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "a",
        " ",
        "\n",
        "\n  ",
        "\\\n",
        "\\",
        "\\N{",
        "x}",
        "1",
        "if ",
    ),
    *(
        "type ",
        "except ",
        "try:",
        ",",
        ":",
        "lambda ",
        "def f",
        "t'",
        "rb'",
        "!r",
        "=",
        "#",
        "é",
        "\x0c",
        "\t",
        ";",
        "0x",
    ),
    *(
        "_",
        "else:",
        "print ",
        "raise ",
        "import ",
        "from ",
        "class A",
        "match ",
        "case ",
        "async ",
        "await ",
        "*",
        "**",
    ),
    *(
        "->",
        ":=",
        "...",
        "@",
        "yield ",
        "not ",
        "is ",
        "in ",
        "for ",
        "with ",
        "as ",
        "None",
        "del ",
        "global ",
        "1e5",
        ".",
    ),
    *NEW.values(),
    *OLD.values(),
)


def content_of(filename: str, content: bytes) -> dict[str, object]:
    """Return all values of the file's record except those that depend on the file's compression."""
    reading = read_distribution(io.BytesIO(content), filename, hash_content=False)
    values = record_to_json(reading.record) | {"metadata_version": reading.record.metadata_version}
    if reading.record.error is not None:
        values["error"] = [reading.record.error.kind.value, _NUMBER.sub("#", reading.record.error.text)]
    return values | {"setup_arguments": reading.extract.setup_arguments.hex()}


def mutated_files(random: Random) -> Iterator[tuple[str, bytes]]:
    """Yield real and odd files with small mutations, without end."""
    scripts = [*SCRIPTS.values(), IMPORTS + "setup(name='demo', packages=['demo'])\n"]
    headers = [f"Name: demo\nVersion: 1.0\nRequires-Dist: {each}\n" for each in REQUIREMENTS]
    while True:
        kind = random.randrange(5)
        if kind == 0:
            _, filename, content = random.choice(ODD_FILES)
            yield filename, fuzz_targets.mutate_bytes(content, random)
        elif kind in {1, 2}:
            text = with_pieces(random.choice(scripts) if kind == 1 else "", random)
            cookie = f"# coding: {random.choice(COOKIES)}\n" if random.random() < 0.1 else ""
            source = f"{cookie}from setuptools import setup\n{text}\nsetup(name='demo', packages=['demo'])\n"
            yield "demo-1.0.tar.gz", sdist({"setup.py": source.encode("utf-8", "replace")})
        elif kind == 3:
            yield "demo-1.0-py3-none-any.whl", wheel({"demo.py": ""}, with_pieces(random.choice(headers), random))
        else:
            names = [f"{with_pieces('a', random)}.py".replace("\n", "").replace("\\", "") for _ in range(5)]
            yield f"demo-1{random.choice(names)[:3]}-py3-none-any.whl", wheel(dict.fromkeys(names, ""), headers[0])


def with_pieces(text: str, random: Random) -> str:
    """Return `text` with up to ten pieces inserted or removed."""
    for _ in range(random.randrange(1, 11)):
        at = random.randrange(len(text) + 1)
        cut = at + (random.randrange(4) if random.random() < 0.3 else 0)
        text = f"{text[:at]}{random.choice(_PIECES)}{text[cut:]}"
    return text


def write(path: Path, seconds: float, seed: int) -> None:
    encode = msgspec.msgpack.Encoder().encode
    end = time.monotonic() + seconds
    count = 0
    with path.open("wb") as file:
        for filename, content in mutated_files(Random(seed)):
            line = encode((filename, content, content_of(filename, content)))
            file.write(len(line).to_bytes(4) + line)
            count += 1
            if time.monotonic() > end:
                break
    report(f"{count} files read by Python {platform.python_version()}")


def compare(path: Path) -> int:
    """Return the number of records that differ here."""
    count = different = 0
    with path.open("rb") as file:
        while size := file.read(4):
            filename, content, expected = msgspec.msgpack.decode(file.read(int.from_bytes(size)))
            found = msgspec.msgpack.decode(msgspec.msgpack.encode(content_of(filename, content)))
            count += 1
            if found != expected:
                different += 1
                values = {key: (expected[key], found[key]) for key in expected if found[key] != expected[key]}
                report(f"{filename!a}, {len(content)} bytes: {values!a:.2000}")
    report(f"{count} files read again by Python {platform.python_version()}: {different} records differ")
    return different


def known_files(names: Container[str] | None = None) -> Iterator[tuple[str, str, bytes]]:
    """Yield name, filename and content of all odd and all small hostile files. `names` restricts the hostile files."""
    yield from ODD_FILES
    for case in CASES:
        if (names is None or case.name in names) and len(content := case.build()) < MAX_KNOWN_BYTES:
            yield case.name, case.filename, content


def digest_of(filename: str, content: bytes) -> str:
    """Return a hash of all values of the file's record, in hex."""
    values = json.dumps(content_of(filename, content), sort_keys=True)
    return hashlib.blake2b(values.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def report(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["write", "compare", "digests"])
    parser.add_argument("file", type=Path, nargs="?", default=DIGESTS)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.action == "digests":
        digests = {name: digest_of(filename, content) for name, filename, content in known_files()}
        arguments.file.write_text(json.dumps(digests, indent=0) + "\n")
    elif arguments.action == "write":
        write(arguments.file, arguments.seconds, arguments.seed)
    else:
        sys.exit(compare(arguments.file) > 0)


if __name__ == "__main__":
    main()
