"""Steps of histories, drawn at random from a seed: operations and faults of an index, and work of the catalog.

A history is a list of steps. A step is the name of a method of `Following` (model_following.py) with its arguments. All
values are plain, so that a history can be printed, shortened and repeated.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from packaging.utils import canonicalize_name

Operation = tuple[str, str, str | None, Any]
"""What the index does: kind, project, version, and a filename or a count."""
Step = tuple[str, dict[str, Any]]

SPELLINGS = {"alpha": ("Alpha", "ALPHA"), "beta-pkg": ("beta.pkg", "Beta_Pkg"), "gamma": ("gamma", "Gamma")}
VERSIONS = ("1.0", "2.0", "1.0.0")
ENDINGS = ("-py3-none-any.whl", "-py2-none-any.whl", ".tar.gz", ".zip", "-py3.8.egg", ".exe")
EVENTS = ("add Owner somebody", "rename from Other", "docupdate", "an unknown action")
ODD_ROWS = ("no name", "odd version", "no serial", "serial as text", "short")
LARGEST = 2_000
_LARGE = (50, 50, 120, 120, 300, 700, LARGEST)

KINDS = ("renames", "spellings", "anyway", "drift", "races", "lags", "users", "audits", "histories", "sizes", "rows")
"""What a history can have apart from what all have. `drift` leaves out what would make it unknowable."""


def draw_history(seed: int) -> list[Step]:
    """Return the history of a seed."""
    return _Draw(Random(seed)).history()


class _Draw:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._kinds = {kind for kind in KINDS if random.random() < 0.5}
        if random.random() < 0.75:
            self._kinds.discard("drift")
        if random.random() < 0.97:
            self._kinds.discard("sizes")
        if "drift" in self._kinds:
            self._kinds -= {"races", "lags", "users"}

    def history(self) -> list[Step]:
        random = self._random
        begin = {
            "before": [self._operation(is_old=True) for _ in range(random.randrange(13))],
            "is_cached": random.random() < 0.5,
            "history": random.random() < 0.5,
            "racing": random.choice([0.1, 0.4]) if "races" in self._kinds else 0.0,
            "forgets": random.random() < 0.5,
            "revisits": random.choice([0.0, 50.0]),
            "plan": self._plan(),
        }
        steps = [self._step() for _ in range(random.choice([1, 2, 3, 3, 4, 4, 5, 6, 8, 12]))]
        return [("begin", begin), *steps]

    def _step(self) -> Step:
        random = self._random
        draws: list[tuple[int, Callable[[], Step]]] = [
            (5, lambda: ("happen", {"operations": self._operations(6)})),
            (2, self._trouble),
            (1, lambda: ("heal", {})),
            (1, lambda: ("pass_time", {"seconds": random.choice([1.0, 300.0, 2_000.0, 90_000.0])})),
            (1, self._crawl_all),
            (2, lambda: ("allocate", {"range_events": random.choice([2, 4, 8, 500, 500])})),
            (4, lambda: ("work_on_a_range", {"plan": self._plan(), "choice": random.randrange(1_000)})),
            (2, lambda: ("follow", {"plan": self._plan()})),
            (1, lambda: ("try_again", {"plan": self._plan()})),
        ]
        if "audits" in self._kinds:
            draws.append((2, lambda: ("audit", {"plan": self._plan(), "share": random.choice([0.0, 50.0, 100.0])})))
        draw = random.choices([draw for _, draw in draws], [weight for weight, _ in draws])[0]
        return draw()

    def _trouble(self) -> Step:
        random = self._random
        names = sorted(SPELLINGS)
        is_steady = "drift" in self._kinds
        return "trouble", {
            "failing": random.choice([0.0, 0.1, 0.3]),
            "stale": [] if is_steady else [name for name in names if random.random() < 0.3],
            "absent": [random.choice(names)] if random.random() < 0.3 else [],
            "is_cached": random.random() < 0.5,
        }

    def _crawl_all(self) -> Step:
        history = "histories" in self._kinds and self._random.random() < 0.5
        return "crawl_all", {"plan": self._plan(), "history": history}

    def _plan(self) -> dict[str, Any]:
        """Draw how work is done: after how many requests each worker is killed, the order of the workers, and the
        operations of the index meanwhile.
        """
        random = self._random
        workers = random.choice([1, 1, 1, 2, 3])
        is_calm = random.random() < 0.4
        lifetimes = [None if is_calm or random.random() < 0.4 else random.randrange(60) for _ in range(workers)]
        return {
            "lifetimes": lifetimes,
            "order": [random.randrange(3) for _ in range(random.randrange(40))] if workers > 1 else [],
            "moves": self._operations(4) if random.random() < 0.5 else [],
            "seed": random.randrange(2**16),
        }

    def _operations(self, most: int) -> list[Operation]:
        return [self._operation() for _ in range(self._random.randint(1, most))]

    def _operation(self, *, is_old: bool = False) -> Operation:
        random = self._random
        project = random.choice(sorted(SPELLINGS))
        version = random.choice(VERSIONS if "spellings" in self._kinds else VERSIONS[:2])
        name = random.choice(SPELLINGS[project]) if "renames" in self._kinds else SPELLINGS[project][0]
        kind = random.choices(*self._weighted(is_old))[0]
        match kind:
            case "add" | "add-own" | "add-anyway" | "drift":
                return kind, name, version, file_of(project, version, random.choice(ENDINGS))
            case "remove-file":
                return kind, name, version, file_of(project, version, random.choice(ENDINGS[:3]))
            case "odd-row":
                return kind, name, None, random.choice(ODD_ROWS)
            case "add-many":
                return kind, name, version, random.choice(_LARGE)
            case "event" | "lag":
                return kind, name, None, random.choice(EVENTS[:1] if kind == "lag" else EVENTS)
            case _ if kind in {"remove-release", "yank", "unyank", "quarantine-release", "unquarantine-release"}:
                return kind, name, version, None
            case _:
                return kind, name, None, None

    def _weighted(self, is_old: bool) -> tuple[list[str], list[int]]:
        weights = {
            "add": 10,
            "remove-file": 4,
            "remove-release": 2,
            "yank": 2,
            "unyank": 1,
            "quarantine-release": 2,
            "unquarantine-release": 2,
            "remove-project": 1,
            "quarantine": 1,
            "unquarantine": 1,
            "archive": 1,
            "unarchive": 1,
            "event": 2,
        }
        if "spellings" in self._kinds and is_old:
            weights["add-own"] = 8
        if "renames" in self._kinds:
            weights["respell"] = 1
        if "anyway" in self._kinds:
            weights["add-anyway"] = 6
        if "drift" in self._kinds and not is_old:
            weights["drift"] = 4
        if "lags" in self._kinds:
            weights["lag"] = 3
        if "users" in self._kinds:
            weights["remove-user"] = 2
        if "rows" in self._kinds:
            weights["odd-row"] = 2
        if "sizes" in self._kinds:
            weights["add-many"] = 3
        return list(weights), list(weights.values())


def file_of(project: str, version: str, ending: str) -> str:
    return f"{canonicalize_name(project).replace('-', '_')}-{version}{ending}"
