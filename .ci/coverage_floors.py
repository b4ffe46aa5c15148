"""Fail if tests cover less of a package than before: `python .ci/coverage_floors.py COVERAGE.json`.

`pytest --cov --cov-report=json:COVERAGE.json` writes the file, in `make nightly`. Coverage counts statements and
branches. Code that only runs in child processes does not count. Raise a floor when the coverage has grown.
"""

import json
import sys
from collections import Counter
from pathlib import Path

FLOORS = {
    ".": 96,
    "catalog": 96,
    "cli": 91,
    "client": 94,
    "crawl": 94,
    "dagster_instance": 93,
    "defs": 92,
    "devindex": 98,
    "distributions": 94,
    "dumps": 98,
    "export": 98,
    "extracts": 96,
    "following": 93,
    "iceberg": 90,
    "index": 97,
    "journal": 95,
    "leveldbs": 87,
    "locks": 97,
    "lookup": 96,
    "mirror": 96,
    "parquet": 98,
    "questions": 90,
    "resolve": 96,
    "scopes": 98,
    "service": 94,
    "storage": 97,
    "upkeep": 99,
}
"""The percent by package; `.` stands for the modules at the top."""


def shares(report: dict[str, dict[str, dict[str, dict[str, int]]]]) -> dict[str, float]:
    """Return the covered percent of statements and branches of each package."""
    covered: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for path, entry in report["files"].items():
        parts = Path(path).parts[1:]
        package = parts[0] if len(parts) > 1 else "."
        summary = entry["summary"]
        covered[package] += summary["covered_lines"] + summary["covered_branches"]
        total[package] += summary["num_statements"] + summary["num_branches"]
    return {package: 100 * covered[package] / total[package] for package in sorted(total) if total[package]}


def main() -> None:
    """Print a table, and exit with 1 if a package is below its floor or has none."""
    found = shares(json.loads(Path(sys.argv[1]).read_text()))
    below = [package for package in found.keys() | FLOORS if found.get(package, 0.0) < FLOORS.get(package, 101.0)]
    for package, share in found.items():
        mark = "  BELOW" if package in below else ""
        print(f"{package:20} {share:6.1f} %  floor {FLOORS.get(package, 'missing')}{mark}")
    sys.exit(f"below the floor, or without one: {', '.join(sorted(below))}" if below else 0)


if __name__ == "__main__":
    main()
