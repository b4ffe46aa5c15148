"""Effects of the system calls on a process."""

import platform
import subprocess
import sys

import pytest

from pypi_assets.distributions.containment import kernel

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="they are Linux's")

_READ_BY_A_CHILD = """
import ctypes, os
from pypi_assets.distributions.containment import kernel

if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
    kernel.call({prctl}, 4, 1)  # a change of the user makes undumpable

def is_read_by_a_child(name):
    pid = os.fork()
    if pid == 0:
        try:
            open(f"/proc/{{os.getppid()}}/{{name}}", "rb").read(0)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0

print([is_read_by_a_child(name) for name in ("environ", "mem")])
kernel.set_undumpable()
print([is_read_by_a_child(name) for name in ("environ", "mem")])
"""
_WITHOUT_RIGHTS = """
from pathlib import Path
from pypi_assets.distributions.containment import kernel

kernel.set_no_new_privileges()
kernel.drop_capabilities()
lines = Path("/proc/self/status").read_text().splitlines()
print(*[line.split()[1] for line in lines if line.startswith(("CapEff", "CapPrm", "NoNewPrivs"))])
"""


def printed(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines()


def test_only_dumpable_process_is_readable_by_its_user() -> None:
    prctl = 157 if platform.machine() == "x86_64" else 167
    assert printed(_READ_BY_A_CHILD.format(prctl=prctl)) == ["[True, True]", "[False, False]"]


def test_capabilities_are_dropped() -> None:
    assert printed(_WITHOUT_RIGHTS) == [f"{'0' * 16} {'0' * 16} 1"]


def test_denied_call_raises_with_errno() -> None:
    with pytest.raises(OSError, match="Function not implemented") as caught:
        kernel.call(10_000)
    assert caught.value.errno == 38
