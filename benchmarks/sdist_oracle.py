"""Check whether the record of an sdist agrees with the wheel of the same release.

    python -m benchmarks.sdist_oracle [FOLDER]

`FOLDER` (default .corpora) contains `pairs`, and perhaps folders of further sets: an sdist and a wheel of each of many
releases, which `python -m benchmarks.corpora.download [--all]` fetches. The modules of the sdist's record are compared
with the modules in the wheel, and the requirements if the sdist's are known. Every difference is printed;
benchmarks/corpora/differences.md gives the reasons. Public modules have no leading underscore in any part of their
name. pairs.txt has the stratum and the set of each release. If modules are unknown, the index is 0.

It fails if the mean Jaccard index of all modules is below 0.985, or below 0.995 for the sdists that are graded exact,
or if more than 3 % of the pairs are below 0.5, or if the requirements of more than 1 % differ.
"""

import argparse
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename

from benchmarks.corpora.download import FOLDER, listed_pairs, sdists_in
from benchmarks.corpora.download import canonical as canonical_release
from pypi_assets.distributions.reader import read_path
from pypi_assets.distributions.record import DistributionRecord, ModulesGrade

LEAST = 0.985
LEAST_EXACT = 0.995
MOST_BELOW_HALF = 0.03
MOST_OTHER_REQUIREMENTS = 0.01
SHOWN = 12


@dataclass(frozen=True, slots=True)
class Pair:
    """The records of an sdist and of a wheel of the same release."""

    release: str
    stratum: str
    chosen_as: str
    sdist: DistributionRecord
    wheel: DistributionRecord

    @property
    def index(self) -> float:
        """Return the Jaccard index of all modules."""
        return 0.0 if self.sdist.modules is None else jaccard(set(self.sdist.modules), set(self.wheel.modules or ()))


def read_pairs(folder: Path) -> list[Pair]:
    sdists = {parse_sdist_filename(path.name): path for path in sdists_in(folder)}
    wheels = {parse_wheel_filename(path.name)[:2]: path for path in folder.glob("*.whl")}
    listed = {canonical_release(pair.release): (pair.stratum, pair.chosen_as) for pair in listed_pairs()}
    return [
        Pair(
            f"{name} {version}",
            *listed.get(f"{name}=={version}", ("other", "not listed")),
            read_path(sdists[name, version]),
            read_path(wheels[name, version]),
        )
        for name, version in sorted(sdists.keys() & wheels.keys())
    ]


def public(modules: set[str]) -> set[str]:
    return {name for name in modules if not any(part.startswith("_") for part in name.split("."))}


def jaccard(one: set[str], other: set[str]) -> float:
    """Return the Jaccard index of two sets. It is 1 if both are equal, even if both are empty."""
    return len(one & other) / len(one | other) if one | other else 1.0


def canonical(requirement: str) -> str:
    """Return one spelling for all equivalent requirements.

    Names, extras and specifiers have one form. packaging formats the markers, and brackets around terms that `and`
    joins are removed.
    """
    try:
        parsed = Requirement(requirement)
    except InvalidRequirement:
        return requirement
    parsed.name = canonicalize_name(parsed.name)
    parsed.extras = {canonicalize_name(extra) for extra in parsed.extras}
    return _JOINED.sub(r"\1 and", str(parsed))


_JOINED = re.compile(r"(?<=; )\(((?:(?! or )[^()])*)\) and")


def listing(names: set[str]) -> str:
    shown = sorted(names)[:SHOWN]
    return ", ".join(shown) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def print_groups(title: str, pairs: list[Pair], group_of: Callable[[Pair], str]) -> None:
    """Print for each group its size, the mean index, and the shares that are graded exact and below 0.5."""
    groups: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        groups[group_of(pair)].append(pair)
    print(f"\n{title:24}{'pairs':>6}{'mean':>9}{'exact':>8}{'below 0.5':>11}")
    for name, members in [*sorted(groups.items()), ("all", pairs)]:
        exact = sum(pair.sdist.modules_grade == ModulesGrade.EXACT for pair in members) / len(members)
        below = sum(pair.index < 0.5 for pair in members) / len(members)
        print(f"{name:24}{len(members):6}{fmean(pair.index for pair in members):9.4f}{exact:8.0%}{below:11.1%}")


def compare_modules(pairs: list[Pair]) -> tuple[float, float]:
    """Print each difference and the means by rule; return the mean indices of public and of all modules."""
    public_by_rule: dict[str, list[float]] = defaultdict(list)
    every: list[float] = []
    stubs_differ = []
    for pair in pairs:
        claimed, found = set(pair.sdist.modules or ()), set(pair.wheel.modules or ())
        public_by_rule[pair.sdist.modules_by or "unknown"].append(jaccard(public(claimed), public(found)))
        every.append(pair.index)
        if pair.sdist.stubs != pair.wheel.stubs:
            stubs_differ.append(pair.release)
        if claimed != found:
            print(f"{pair.release} ({pair.sdist.modules_by}, {pair.sdist.modules_grade}): {every[-1]:.3f}")
            for side, names in (("sdist", claimed - found), ("wheel", found - claimed)):
                if names:
                    print(f"    only in the {side}: {listing(names)}")
    print(f"\n{'rule':40}{'pairs':>6}{'public':>8}")
    for rule, values in sorted(public_by_rule.items(), key=lambda item: -len(item[1])):
        print(f"{rule:40}{len(values):6}{fmean(values):8.4f}")
    if stubs_differ:
        print(f"stubs differ: {', '.join(stubs_differ)}")
    return fmean(value for values in public_by_rule.values() for value in values), fmean(every)


def compare_requirements(pairs: list[Pair]) -> int:
    """Print each difference; return the number of pairs that differ."""
    rules: Counter[str] = Counter()
    differing = 0
    for pair in pairs:
        rules[pair.sdist.requires_by or "unknown"] += 1
        if pair.sdist.requires_dist is None:
            continue
        claimed = set(map(canonical, pair.sdist.requires_dist))
        found = set(map(canonical, pair.wheel.requires_dist or ()))
        if claimed != found:
            differing += 1
            print(f"{pair.release} ({pair.sdist.requires_by}): requirements differ")
            for side, requirements in (("sdist", claimed - found), ("wheel", found - claimed)):
                if requirements:
                    print(f"    only in the {side}: {listing(requirements)}")
    print(f"\n{'requirements by':40}{'pairs':>6}")
    for rule, count in rules.most_common():
        print(f"{rule:40}{count:6}")
    return differing


def is_good(pairs: list[Pair], differing: int) -> bool:
    exact = [pair.index for pair in pairs if pair.sdist.modules_grade == ModulesGrade.EXACT]
    known = sum(pair.sdist.requires_dist is not None for pair in pairs)
    return (
        fmean(pair.index for pair in pairs) >= LEAST
        and (not exact or fmean(exact) >= LEAST_EXACT)
        and sum(pair.index < 0.5 for pair in pairs) <= MOST_BELOW_HALF * len(pairs)
        and differing <= MOST_OTHER_REQUIREMENTS * known
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    folder = parser.parse_args().folder
    pairs = [
        pair for name in dict.fromkeys(each.folder for each in listed_pairs()) for pair in read_pairs(folder / name)
    ]
    if not pairs:
        parser.error(f"no pairs in {folder}: python -m benchmarks.corpora.download brings them")
    public_mean, mean = compare_modules(pairs)
    print_groups("grade", pairs, lambda pair: pair.sdist.modules_grade or "unknown")
    print_groups("stratum", pairs, lambda pair: pair.stratum)
    print_groups("set", pairs, lambda pair: pair.chosen_as)
    print()
    differing = compare_requirements(pairs)
    same = sum(pair.sdist.modules == pair.wheel.modules for pair in pairs)
    known = sum(pair.sdist.requires_dist is not None for pair in pairs)
    print(f"\n{len(pairs)} pairs, {same} with the same modules in both")
    print(f"mean Jaccard index: public modules {public_mean:.4f}, all modules {mean:.4f}")
    print(f"requirements are known from {known} sdists, {differing} of them differ from the wheel's")
    if not is_good(pairs, differing):
        sys.exit(1)


if __name__ == "__main__":
    main()
