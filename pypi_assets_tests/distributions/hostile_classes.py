"""Count, by class, the hostile wheels and sdists whose records differ from pip's files. See docs/reading.md.

    python -m pypi_assets_tests.distributions.hostile_classes [PYTHON...]

The pip of each PYTHON, by default the running one, installs the wheels and unpacks the sdists into scratch folders. An
error or a doubt counts as "here" if pip still installs or unpacks the file. Each such error is printed with its text.
"""

# ruff: noqa: T201 - it prints tables

import argparse
import io
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.limits import ReadLimits
from pypi_assets.distributions.pip_comparison import differences_from, has_doubt
from pypi_assets.distributions.reader import make_record, read_distribution, read_extract
from pypi_assets_tests.distributions import hostile_sdists, hostile_tars
from pypi_assets_tests.distributions.hostile_wheel_files import WHEEL_FILES
from pypi_assets_tests.distributions.hostile_wheels import WHEEL, WHEELS
from pypi_assets_tests.distributions.pip_trees import differences, unpacked_by_pips
from pypi_assets_tests.distributions.pip_views import pip_views

COLUMNS = ("files", "silent differences", "pip refuses", "an error here", "a doubt here")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome for one file. `is_silent`: the record differs from pip's files without any sign of it."""

    name: str
    is_silent: bool
    is_refused: bool
    error: str | None
    is_doubt: bool

    @property
    def is_error_here(self) -> bool:
        return self.error is not None and not self.is_refused

    def counts(self) -> Counter[str]:
        doubt = self.is_doubt and self.error is None and not self.is_refused
        return Counter(dict(zip(COLUMNS, (1, self.is_silent, self.is_refused, self.is_error_here, doubt), strict=True)))


def wheel_outcomes(python: str) -> list[Outcome]:
    contents = {name: build() for name, build in (WHEELS | WHEEL_FILES).items()}
    with tempfile.TemporaryDirectory() as scratch:
        views = pip_views(contents, Path(scratch), python)
    results = []
    for name, content in contents.items():
        record = read_distribution(io.BytesIO(content), WHEEL).record
        is_refused = views[name]["refusal"] is not None
        differs = is_refused or any(differences_from(record, views[name]))
        silent = differs and not has_doubt(record)
        results.append(Outcome(name, silent, is_refused, record.error and record.error.text, has_doubt(record)))
    return results


def sdist_outcomes(python: str) -> list[Outcome]:
    cases = {case.name: case for case in (*hostile_tars.CASES, *hostile_sdists.CASES)}
    contents = {name: (case.build(), case.filename) for name, case in cases.items()}
    trees = unpacked_by_pips(contents, python)
    results = []
    for name, (content, filename) in contents.items():
        extract = read_extract(io.BytesIO(content), parse_filename(filename), ReadLimits())
        record = make_record(extract, filename)
        silent = not has_doubt(record) and bool(differences(extract, trees[name]))
        is_refused = trees[name].refusal is not None
        results.append(Outcome(name, silent, is_refused, record.error and record.error.text, has_doubt(record)))
    return results


def print_table(title: str, outcomes: Iterable[Outcome]) -> None:
    classes: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        classes.setdefault(outcome.name.partition(":")[0], Counter()).update(outcome.counts())
        if outcome.is_silent:
            print(f"silent: {outcome.name}")
        if outcome.is_error_here:
            print(f"an error here: {outcome.name}: {outcome.error}")
    print(f"| {title} | {' | '.join(COLUMNS)} |\n|{'---|' * (len(COLUMNS) + 1)}")
    for name, counts in (*classes.items(), ("all", sum(classes.values(), Counter()))):
        print(f"| {name} | {' | '.join(str(counts[column]) for column in COLUMNS)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", nargs="*", default=[sys.executable])
    for python in map(os.path.abspath, parser.parse_args().python):
        version = subprocess.run([python, "-m", "pip", "--version"], check=True, capture_output=True, text=True).stdout
        print(" ".join(version.split()[:2]), version[version.rindex("(") :].strip())
        print_table("wheels", wheel_outcomes(python))
        print_table("sdists", sdist_outcomes(python))


if __name__ == "__main__":
    main()
