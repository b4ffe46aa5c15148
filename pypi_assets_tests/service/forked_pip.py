"""Run unmodified pip many times in forks of one process that has already imported it, so that a run starts fast.

Each line of standard input is a JSON array of arguments. The reply is a line with the exit code and the output.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ForkedPip:
    """A process that runs pip."""

    process: subprocess.Popen[str]

    def run(self, arguments: Sequence[str]) -> tuple[int, str]:
        """Return the exit code of `pip ARGUMENTS` and everything that it printed."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(list(arguments)) + "\n")
        self.process.stdin.flush()
        code, printed = json.loads(self.process.stdout.readline())
        return code, printed


@contextmanager
def forked_pip() -> Iterator[ForkedPip]:
    """Yield a process that runs pip while the context lasts, without any pip configuration."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    with subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**kept, "PIP_CONFIG_FILE": os.devnull, "NO_PROXY": "*"},
    ) as process:
        yield ForkedPip(process)  # the process ends when its standard input is closed


def _serve() -> None:
    from pip._internal.cli.main import main
    from pip._internal.commands import create_command

    create_command("install")  # import pip's modules here, so that forks do not have to
    for line in sys.stdin:
        with tempfile.TemporaryFile() as printed:
            if (child := os.fork()) == 0:
                os.dup2(printed.fileno(), 1)
                os.dup2(printed.fileno(), 2)
                warnings.simplefilter("ignore")
                code = 3
                try:
                    code = main(json.loads(line))
                finally:
                    sys.stdout.flush()
                    sys.stderr.flush()
                    os._exit(code)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            printed.seek(0)
            sys.stdout.write(json.dumps([code, printed.read().decode(errors="replace")]) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    _serve()
