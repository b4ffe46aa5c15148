"""Fuzz the readers of distributions and of index responses: `python -m pypi_assets_tests.fuzz --minutes 60`.

Minutes are processor time. If atheris is installed (`pip install atheris`), coverage guides the inputs. Otherwise
inputs are mutated at random. An input that breaks a rule of one of the fuzz_targets.py files is written to the folder
of findings, once per place in the code.

With `--apart`, each target runs in a separate process with bounded memory, for `--minutes` each, one after the other. A
native crash is then reported as a finding too, together with its input.
"""

import argparse
import hashlib
import importlib
import importlib.util
import json
import os
import resource
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

# ruff: noqa: T201 - findings are printed

TARGETS_MODULES = ("pypi_assets_tests.distributions.fuzz_targets", "pypi_assets_tests.index.fuzz_targets")
MAX_MEMORY_BYTES = 1024**3
CORPUS_SIZE = 300
REPORT_EVERY_S = 60.0


class Fuzzing:
    """One run: its executions, its limit of processor time, and its findings."""

    def __init__(self, targets: Sequence[Any], findings: Path, seconds: float, current: Path | None = None) -> None:
        self.targets = targets
        self._folder = findings
        self.current = current
        self._started = time.process_time()
        self._seconds = seconds
        self._reported = 0.0
        self.executions: Counter[str] = Counter()
        self.found: dict[str, str] = {}

    @property
    def elapsed_s(self) -> float:
        return time.process_time() - self._started

    @property
    def is_over(self) -> bool:
        return self.elapsed_s > self._seconds

    def run(self, content: bytes) -> None:
        """Check one input. The first byte selects the target."""
        target = self.targets[content[0] % len(self.targets)] if content else self.targets[0]
        self.executions[target.name] += 1
        if self.current is not None:
            self.current.write_bytes(content[1:])
        try:
            target.check(content[1:])
        except Exception as error:  # noqa: BLE001 - any exception of a check is a finding
            self._keep(target.name, content[1:], error)
        if self.elapsed_s - self._reported > REPORT_EVERY_S:
            self.report()

    def _keep(self, target: str, content: bytes, error: Exception) -> None:
        place = next(
            (
                f"{Path(frame.filename).name}:{frame.lineno}"
                for frame in reversed(traceback.extract_tb(error.__traceback__))
                if "pypi_assets" in frame.filename
            ),
            "?",
        )
        key = f"{target}: {type(error).__name__} at {place}"
        if key in self.found:
            return
        digest = hashlib.sha256(content).hexdigest()[:12]
        self.found[key] = digest
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / f"{digest}.input").write_bytes(content)
        text = "".join(traceback.format_exception(error))
        (self._folder / f"{digest}.txt").write_text(f"{key}\n{text}", errors="backslashreplace")
        print(f"found {digest}: {key}: {str(error)[:200]!a}", flush=True)

    def report(self) -> None:
        self._reported = self.elapsed_s
        print(json.dumps({"executions": self.executions, "found": self.found}))
        print(f"{self.executions.total()} executions in {self.elapsed_s / 60:.1f} minutes of processor", flush=True)


def mutate_any(targets: Sequence[Any], content: bytes, random: Random, mutate: Any) -> bytes:
    """Return a mutated input for the same target."""
    if not content:
        return bytes([random.randrange(len(targets))])
    target = targets[content[0] % len(targets)]
    return content[:1] + bytes(target.mutate(content[1:], random, mutate))


def seeds(targets: Sequence[Any], real: Mapping[str, list[bytes]]) -> list[bytes]:
    return [
        bytes([number]) + seed
        for number, target in enumerate(targets)
        for seed in (*target.seeds(), *real.get(target.name, ()))
    ]


def fuzz_by_chance(module: ModuleType, fuzzing: Fuzzing, corpus: list[bytes], random: Random) -> None:
    """Mutate seeds and earlier mutations. A full corpus drops random members."""
    first = len(corpus)
    by_target: dict[int, list[bytes]] = {}
    for seed in corpus:
        fuzzing.run(seed)
        by_target.setdefault(seed[0], []).append(seed)
    while not fuzzing.is_over:
        pool = by_target[random.randrange(len(fuzzing.targets))]
        mutated = mutate_any(fuzzing.targets, random.choice(pool), random, module.mutate_bytes)
        fuzzing.run(mutated)
        if len(pool) < CORPUS_SIZE + first:
            pool.append(mutated)
        elif random.random() < 0.1:
            pool[random.randrange(first, len(pool))] = mutated


def fuzz_by_coverage(fuzzing: Fuzzing, first: list[bytes], corpus: Path, seed: int) -> None:
    """Let libFuzzer choose what to mutate. This ends the process."""
    atheris = importlib.import_module("atheris")
    corpus.mkdir(parents=True, exist_ok=True)
    for content in first:
        (corpus / hashlib.sha256(content).hexdigest()).write_bytes(content)

    def run(content: bytes) -> None:
        fuzzing.run(content)
        if fuzzing.is_over:
            fuzzing.report()
            os._exit(0)  # libFuzzer treats any other exit as a crash

    def mutate(content: bytes, max_size: int, number: int) -> bytes:
        def mutate_raw(part: bytes, random: Random) -> bytes:
            return atheris.Mutate(part, max(min(len(part) * 2, max_size), 16)) if part else random.randbytes(4)

        return mutate_any(fuzzing.targets, bytes(content), Random(number), mutate_raw)[:max_size]

    options = [f"-seed={seed}", "-timeout=60", "-rss_limit_mb=2048", "-max_len=65536", "-verbosity=0"]
    options.append(f"-artifact_prefix={corpus.parent}/")
    atheris.Setup([sys.argv[0], *options, str(corpus)], run, custom_mutator=mutate)
    atheris.Fuzz()


def load_targets(*, instrumented: bool) -> tuple[ModuleType, list[Any]]:
    """Import the targets. Under atheris, import them with instrumentation, which is required to measure coverage."""
    if not instrumented:
        modules = [importlib.import_module(name) for name in TARGETS_MODULES]
    else:
        atheris = importlib.import_module("atheris")
        with atheris.instrument_imports(include=["pypi_assets.distributions", "pypi_assets.index"]):
            modules = [importlib.import_module(name) for name in TARGETS_MODULES]
    return modules[0], [target for module in modules for target in module.TARGETS]


def fuzz_apart(names: Sequence[str], findings: Path, minutes: float, seed: int) -> int:
    """Fuzz each target in a separate process, and return the number of targets that crashed."""
    crashed = 0
    findings.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        current = findings / f"current-{number}.input"
        command = [sys.executable, "-m", "pypi_assets_tests.fuzz", "--by-chance", "--target", name]
        command += ["--minutes", str(minutes), "--findings", str(findings), "--seed", str(seed)]
        print(name, flush=True)
        ended = subprocess.run([*command, "--current", str(current)], check=False, preexec_fn=_limit_memory)
        if ended.returncode:
            crashed += 1
            kept = current.rename(findings / f"crash-{number}-{seed}.input")
            print(f"found a crash of {name} with {ended.returncode}: {kept}", flush=True)
        else:
            current.unlink(missing_ok=True)
    return crashed


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--target", action="append", help="fuzz only the target of this name (default: all)")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--seeds", type=Path, help="a folder of real wheels and sdists to use as additional seeds")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--by-chance", action="store_true", help="mutate at random, even if atheris is installed")
    parser.add_argument("--apart", action="store_true", help="run each target in a separate process")
    parser.add_argument("--current", type=Path, help="the file to write each input to before it runs")
    chosen = parser.parse_args(arguments)
    guided = not (chosen.by_chance or chosen.apart) and importlib.util.find_spec("atheris") is not None
    module, all_targets = load_targets(instrumented=guided)
    targets = [target for target in all_targets if not chosen.target or target.name in chosen.target]
    if not targets:
        parser.error(f"unknown target; choose from {', '.join(target.name for target in all_targets)}")
    if chosen.apart:
        sys.exit(fuzz_apart([target.name for target in targets], chosen.findings, chosen.minutes, chosen.seed))
    fuzzing = Fuzzing(targets, chosen.findings, chosen.minutes * 60, chosen.current)
    print(f"seed {chosen.seed}, {'by coverage' if guided else 'by chance'}", flush=True)
    corpus = seeds(targets, module.real_seeds(chosen.seeds) if chosen.seeds else {})
    if guided:
        fuzz_by_coverage(fuzzing, corpus, chosen.findings / "corpus", chosen.seed)
    fuzz_by_chance(module, fuzzing, corpus, Random(chosen.seed))
    fuzzing.report()
    sys.exit(len(fuzzing.found) if chosen.current else 0)


if __name__ == "__main__":
    main()
