"""Types of parameters that several questions share, with their limits."""

from typing import Annotated

from packaging.utils import canonicalize_name
from packaging.version import Version

from pypi_assets.questions.question import Accepts

ModuleName = Annotated[
    str, Accepts(text="the dotted name of a module, such as yaml.nodes", min_length=1, max_length=1_000)
]
CommandName = Annotated[str, Accepts(text="the name of a command, such as http", min_length=1, max_length=300)]
ProjectName = Annotated[str, Accepts(text="the name of a project, in any spelling", max_length=300)]
ProjectNameOrPrefix = Annotated[
    str,
    Accepts(
        text="the name of a project, in any spelling: ASCII letters and digits, with . _ - between them",
        min_length=1,
        max_length=300,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        canonical=canonicalize_name,
    ),
]
ExactProjectName = Annotated[
    str,
    Accepts(
        text="the name of a project, in any spelling: ASCII letters and digits, with . _ - between them",
        min_length=1,
        max_length=300,
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$",
        canonical=canonicalize_name,
    ),
]
VERSION = "a PEP 440 version in lower case, such as 2.32.3 or 1.0rc1"
VERSION_PATTERN = (
    r"^([0-9]{1,18}!)?[0-9]{1,18}(\.[0-9]{1,18})*((a|b|rc)[0-9]{1,18})?(\.post[0-9]{1,18})?(\.dev[0-9]{1,18})?"
    r"(\+[a-z0-9]+([-_.][a-z0-9]+)*)?$"
)
Requirement = Annotated[str, Accepts(text="a project NAME, or NAME==VERSION for one of its versions", max_length=600)]
Sha256 = Annotated[
    str, Accepts(text="a SHA-256: 64 hex digits, in upper or lower case", max_length=64, pattern="^[0-9A-Fa-f]*$")
]
Prefix = Annotated[bool, Accepts(text="match all names that begin with the given text")]
DEFAULT_PYTHON, DEFAULT_PLATFORM = "3.13", "linux-x86_64"
PYTHON = Accepts(text="a CPython version, such as 3.12 or 3.12.4", pattern=r"^3\.[0-9]{1,2}(\.[0-9]{1,2})?$")
PLATFORM = Accepts(
    text="a platform: linux-x86_64, macos-arm64, windows-x86_64 and others, or a wheel's platform tag",
    pattern=(
        r"^(linux|macos|windows|(linux|musllinux)-(x86_64|aarch64)|macos-(arm64|x86_64)|windows-(x86_64|arm64)|win32"
        r"|win_amd64|win_arm64|(manylinux|musllinux)_[0-9]{1,3}_[0-9]{1,3}_[a-z0-9_]{1,40}"
        r"|(manylinux1|manylinux2010|manylinux2014|linux)_[a-z0-9_]{1,40}"
        r"|macosx_[1-9][0-9]_[0-9]{1,2}_(arm64|x86_64))$"
    ),
)
Depth = Annotated[int | None, Accepts(text="with transitive: the greatest depth to follow", ge=1, le=1_000)]


def version_of(which: str) -> Accepts:
    """Return the limits of a version parameter. `which` says how it selects projects."""
    return Accepts(
        text=f"{VERSION}: {which}", max_length=100, pattern=VERSION_PATTERN, canonical=lambda text: str(Version(text))
    )
