"""Train the compression dictionary for extracts, on the real distributions of benchmarks/corpora.

    python -m benchmarks.train_extract_dictionary ID [FOLDER] [--to DICTIONARIES]

Writes ID.zdict, by default into pypi_assets/distributions/dictionaries. A dictionary must be kept forever once extracts
were stored with it. A better dictionary gets the next ID; set DICTIONARY_ID in distributions/extract.py to it. Prose,
people's names, programs and addresses are excluded from the training, since they do not belong in this repository.
Prints the size of the extracts of each kind without a dictionary, with this one, and with one that was trained on the
other half of the projects. The last size can be expected for distributions outside of the training set.
"""

import argparse
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import mean
from urllib.parse import urlsplit

import zstandard
from packaging.utils import canonicalize_name
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from benchmarks.corpora.download import FOLDER
from pypi_assets.distributions.extract import COMPRESSION_LEVEL, DICTIONARIES, Extract, pack
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.reader import read_distribution

DICTIONARY_BYTES = 112 * 1024
SAMPLE_BYTES = 64 * 1024
UNWANTED = re.compile(rb"@|://|\bpypi\.|" + re.escape(str(urlsplit(PYPI_SIMPLE_ENDPOINT).hostname).encode()))
WRITTEN_BY_PEOPLE = re.compile(
    rb"^((?:Summary|Author|Maintainer|Keywords|License|Description|Home-page|Download-URL|Project-URL)[\w-]*: ?).*"
)
PROGRAMS = ("setup.py", "meson.build", "CMakeLists.txt", "Cargo.toml")


def read_extracts(paths: Iterable[Path]) -> dict[Path, Extract]:
    found = {}
    for path in paths:
        with path.open("rb") as file:
            found[path] = read_distribution(file, path.name, hash_content=False).extract
    return found


def sample(extract: Extract) -> bytes:
    """Return the training content of one extract."""
    files = {
        name: b"".join(
            WRITTEN_BY_PEOPLE.sub(rb"\1", line)
            for line in content.splitlines(keepends=True)
            if not UNWANTED.search(line) and not line.startswith((b" ", b"\t"))
        )
        for name, content in extract.files.items()
        if not name.endswith(PROGRAMS)
    }
    return pack(Extract(extract.members, files))[:SAMPLE_BYTES]


def train(found: Iterable[Extract], dictionary_id: int) -> zstandard.ZstdCompressionDict:
    samples = [sample(extract) for extract in found]
    return zstandard.train_dictionary(DICTIONARY_BYTES, samples, level=COMPRESSION_LEVEL, dict_id=dictionary_id)


def sizes(found: Iterable[Extract], dictionary: zstandard.ZstdCompressionDict | None) -> list[int]:
    compressor = zstandard.ZstdCompressor(level=COMPRESSION_LEVEL, dict_data=dictionary, write_checksum=True)
    return [len(compressor.compress(pack(extract))) for extract in found]


def halves(found: Mapping[Path, Extract]) -> tuple[dict[Path, Extract], dict[Path, Extract]]:
    """Return every other project, and the remaining projects. No project is in both halves."""
    projects = {path: canonicalize_name(parse_filename(path.name).project or path.name) for path in found}
    first = set(sorted(set(projects.values()))[::2])
    return (
        {path: extract for path, extract in found.items() if projects[path] in first},
        {path: extract for path, extract in found.items() if projects[path] not in first},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("id", type=int)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER, help="see benchmarks/corpora/download.py")
    parser.add_argument("--to", type=Path, default=DICTIONARIES, help="the folder of the dictionary")
    options = parser.parse_args()
    kinds = {
        "wheels of closure": read_extracts(sorted(options.folder.glob("closure/*.whl"))),
        "wheels of pairs": read_extracts(sorted(options.folder.glob("pairs/*.whl"))),
        "sdists of pairs": read_extracts(sorted(options.folder.glob("pairs/*.tar.gz"))),
    }
    everything = {path: extract for found in kinds.values() for path, extract in found.items()}
    dictionary = train(everything.values(), options.id)
    target = options.to / f"{options.id}.zdict"
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(dictionary.as_bytes())
    one, other = halves(everything)
    trained_on_one, trained_on_other = train(one.values(), options.id), train(other.values(), options.id)
    print(f"{len(everything)} distributions, {target.stat().st_size} bytes of dictionary; mean bytes of an extract:")
    print(f"{'':20}{'files':>6}{'packed':>9}{'no dict.':>9}{'unseen':>9}{'this one':>9}")
    for kind, found in kinds.items():
        unseen = sizes([found[path] for path in found if path in other], trained_on_one) + sizes(
            [found[path] for path in found if path in one], trained_on_other
        )
        columns = (
            [len(pack(extract)) for extract in found.values()],
            sizes(found.values(), None),
            unseen,
            sizes(found.values(), dictionary),
        )
        print(f"{kind:20}{len(found):6}" + "".join(f"{mean(column):9.0f}" for column in columns))


if __name__ == "__main__":
    main()
