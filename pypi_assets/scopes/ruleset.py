"""The rules of a scope: which requirements are followed, which projects are accepted, which of their files are read.

Rules are ordered. If several rules match and have a setting, the last one of them decides it. Decisions depend on
nothing but the rules, the projects and the files, so they do not change from one run to the next.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from pypi_assets.distributions.path_patterns import matches_glob
from pypi_assets.distributions.pyproject import parse_toml
from pypi_assets.errors import ExpectedError
from pypi_assets.scopes import LEAST_NICE, MOST_NICE
from pypi_assets.scopes.closure import Spans, difference, intersection, union
from pypi_assets.scopes.root_files import read_bytes

Kind = Literal["wheel", "sdist", "egg"]
_RULE = re.compile(r"rule\[(\d+)\](?:\.(\w+).*)?")
_ACCEPTED = {
    "projects": 'a list of patterns such as ["torch*"]',
    "kinds": 'a list of "wheel", "sdist" and "egg"',
    "uploaded_before": 'a day such as "2018-01-01"',
    "releases": '"latest" or "all"',
    **dict.fromkeys(("accept", "skip", "extras"), "true or false"),
    **dict.fromkeys(("nice", "max_files"), "a whole number"),
    "rule": "tables that begin with [[rule]]",
}


class RulesError(ExpectedError):
    """Rules are invalid. The message has the rule, its key, and the values that the key accepts."""


class RequirementRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rules that decide which requirements of an accepted project are followed.

    `releases`: only the requirements of its newest release, or of all. `extras`: also requirements that need an extra.
    `kinds`: the kinds of files whose requirements count.
    """

    releases: Literal["latest", "all"] = "latest"
    extras: bool = False
    kinds: tuple[Kind, ...] = ("wheel", "sdist", "egg")


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One rule: its matchers (`projects`, `kinds`, `uploaded_before`) and its settings. None: not set."""

    projects: tuple[str, ...] = ("*",)
    kinds: tuple[Kind, ...] | None = None
    uploaded_before: date | None = None
    accept: bool | None = None
    skip: bool | None = None
    nice: int | None = None
    max_files: int | None = None

    @property
    def is_of_files(self) -> bool:
        """Check whether the rule matches files, and not whole projects."""
        return self.kinds is not None or self.uploaded_before is not None

    def matches(self, project: str) -> bool:
        """Check whether the rule matches the project with this normalized name."""
        return any(matches_glob(project, pattern) for pattern in self.projects)

    def matches_file(self, file: "RuledFile") -> bool:
        """Check whether the rule matches this file. The caller has checked that it matches the project."""
        if self.kinds is not None and file.kind not in self.kinds:
            return False
        return self.uploaded_before is None or (
            file.uploaded_at is not None and file.uploaded_at < _start_of(self.uploaded_before)
        )


@dataclass(frozen=True, slots=True)
class RuledFile:
    """The properties of a file that rules use. `uploaded_at` is in unix seconds; None if it is unknown."""

    filename: str
    kind: str
    uploaded_at: float | None


class Ruleset(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"rules": "rule"}):
    """The rules of one version. Rules are numbered from 1, in the order of the file."""

    requirements: RequirementRules = RequirementRules()
    rules: tuple[Rule, ...] = ()

    def accepts(self, project: str) -> bool:
        """Check whether the project with this normalized name may enter the scope."""
        return self.deciding_rule(project, "accept")[1] is not False

    def nice(self, project: str) -> int:
        """Return the project's priority; 0 if no rule sets it. Lower values run first."""
        return self.deciding_rule(project, "nice")[1] or 0

    def max_files(self, project: str) -> int | None:
        """Return how many of the project's newest files are read at most; None if there is no limit."""
        most: int | None = self.deciding_rule(project, "max_files")[1]
        return most

    def deciding_rule(self, project: str, setting: str) -> tuple[int | None, Any]:
        """Return the number and value of the rule that decides this project's setting; (None, None) if none does."""
        found: tuple[int | None, Any] = None, None
        for number, rule in enumerate(self.rules, start=1):
            value = getattr(rule, setting)
            if value is not None and not rule.is_of_files and rule.matches(project):
                found = number, value
        return found

    def skipped(self, project: str, files: Sequence[RuledFile]) -> dict[str, str]:
        """Return the files of a project that are not read, each with the reason as a sentence, by filename.

        First, files that a rule skips are excluded. The newest `max_files` of the remaining files are read; files of
        the same age are ordered by filename, and files of unknown age count as oldest.
        """
        ruled = [(number, rule) for number, rule in enumerate(self.rules, start=1) if rule.matches(project)]
        reasons: dict[str, str] = {}
        for file in files:
            deciding = [
                (number, rule.skip) for number, rule in ruled if rule.skip is not None and rule.matches_file(file)
            ]
            if deciding and deciding[-1][1]:
                reasons[file.filename] = f"rule {deciding[-1][0]} skips it"
        number, most = self.deciding_rule(project, "max_files")
        if most is not None:
            left = [file for file in files if file.filename not in reasons]
            left.sort(key=lambda file: (-(file.uploaded_at or 0.0), file.filename))
            reasons |= {file.filename: f"rule {number} reads the newest {most} files" for file in left[most:]}
        return reasons


_KEYS = {
    "": Ruleset.__struct_encode_fields__,
    "requirements": RequirementRules.__struct_fields__,
    "rule": Rule.__struct_fields__,
}
"""The keys that each table accepts."""


def parse_ruleset(text: str) -> Ruleset:
    """Return the ruleset of a TOML text. Raises RulesError.

    >>> parse_ruleset('[[rule]]\\nprojects = ["tf-*"]\\naccept = false').accepts("tf-nightly")
    False
    """
    try:
        ruleset = msgspec.convert(parse_toml(text), Ruleset)
    except msgspec.ValidationError as error:
        raise RulesError(_named(str(error))) from None
    except ValueError as error:
        raise RulesError(f"the rules are not valid TOML: {error}") from None
    if not ruleset.requirements.kinds:
        raise RulesError("requirements.kinds: is empty; omit it, or list wheel, sdist or egg")
    rules = tuple(_checked(rule, number) for number, rule in enumerate(ruleset.rules, start=1))
    return msgspec.structs.replace(ruleset, rules=rules)


def read_rules(path: Path, roots: Iterable[str]) -> str:
    """Return the text of a file of rules.

    Raises RulesError if the rules are invalid or do not accept one of `roots`, and RootsError if the file cannot be
    read.
    """
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RulesError(f"{path}: not in UTF-8: {error}") from None
    if refused := refused_roots(parse_ruleset(text), roots):
        raise RulesError("; ".join(refused))
    return text


def refused_roots(ruleset: Ruleset, roots: Iterable[str]) -> list[str]:
    """Return a sentence for each root that the rules do not accept. Such roots and rules contradict each other."""
    refused = [(root, ruleset.deciding_rule(root, "accept")) for root in roots if not ruleset.accepts(root)]
    return [f"rule {number} does not accept {root}, which is a root" for root, (number, _) in refused]


def _checked(rule: Rule, number: int) -> Rule:
    """Return the rule with normalized patterns of project names. Raises RulesError if the rule makes no sense."""
    for key in ("projects", "kinds"):
        if getattr(rule, key) == ():
            raise RulesError(f"rule {number}, {key}: is empty, so the rule would never match")
    settings = {key: getattr(rule, key) for key in ("accept", "skip", "nice", "max_files")}
    stated = [key for key, value in settings.items() if value is not None]
    if not stated:
        raise RulesError(f"rule {number}: has no setting: it needs accept, skip, nice or max_files")
    if rule.is_of_files and (of_projects := [key for key in stated if key != "skip"]):
        raise RulesError(
            f"rule {number}, {of_projects[0]}: applies to whole projects, but kinds and uploaded_before match files:"
            " put it into a separate rule"
        )
    if rule.accept is False and len(stated) > 1:
        raise RulesError(f"rule {number}, {stated[1]}: has no effect on projects that are not accepted")
    if rule.nice is not None and not LEAST_NICE <= rule.nice <= MOST_NICE:
        raise RulesError(f"rule {number}, nice: expected {LEAST_NICE} to {MOST_NICE}, not {rule.nice}")
    if rule.max_files is not None and rule.max_files < 1:
        raise RulesError(
            f"rule {number}, max_files: expected 1 or more, not {rule.max_files}; use skip = true to read no file"
        )
    return msgspec.structs.replace(rule, projects=tuple(map(canonicalize_name, rule.projects)))


def _start_of(day: date) -> float:
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def _named(error: str) -> str:
    """Return the message for a validation error: the rule and key, the problem, and the values that the key accepts."""
    problem, _, path = error.partition(" - at `$.")
    path = path.rstrip("`")
    found = _RULE.fullmatch(path)
    where = ", ".join(part for part in (f"rule {int(found[1]) + 1}", found[2]) if part) if found else path
    key = (found[2] or "") if found else re.sub(r"\[\d+\]", "", path).rpartition(".")[2]
    accepted = _ACCEPTED.get(key) or ", ".join(_KEYS["rule" if found else path])
    return f"{where or 'the rules'}: {problem[:1].lower()}{problem[1:].replace('`', '')}; it accepts {accepted}"


@dataclass(frozen=True, slots=True)
class ScopeFile:
    """A file of a release, with the serials at which it is live, and the serials at which it is yanked."""

    version: str
    kind: str
    live: Spans
    yanked: Spans = ()


def selected_spans(files: Sequence[ScopeFile], rules: RequirementRules) -> list[Spans]:
    """Return for each file the serials at which its requirements are selected.

    For example, the file of 1.0 is selected until 2.0 is uploaded at serial 7; the prerelease 2.0rc1 is never selected:

        files = [ScopeFile(v, "wheel", live) for v, live in [("1.0", ((3, OPEN_END),)), ("2.0", ((7, OPEN_END),)), ...]]
        selected_spans(files, RequirementRules())  # [((3, 7),), ((7, OPEN_END),), ()]
    """
    usable = [difference(file.live, file.yanked) if file.kind in rules.kinds else () for file in files]
    if rules.releases == "all":
        return usable
    releases: dict[tuple[int, Version | str], list[int]] = {}
    for number, file in enumerate(files):
        if usable[number]:
            releases.setdefault(_rank(file.version), []).append(number)
    selected: list[Spans] = [()] * len(files)
    taken: Spans = ()
    for rank in sorted(releases, reverse=True):
        numbers = releases[rank]
        visible = union(span for number in numbers for span in usable[number])
        free = difference(visible, taken)
        for number in numbers:
            selected[number] = intersection(usable[number], free)
        taken = union((*taken, *visible))
    return selected


def _rank(version: str) -> tuple[int, Version | str]:
    """Return a sort key that is greater for newer releases. Two spellings of a version have the same key."""
    try:
        parsed = Version(version)
    except InvalidVersion:
        return 0, version
    return (1 if parsed.is_prerelease else 2), parsed
