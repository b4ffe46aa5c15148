"""Locks of one project, as installers write them."""

REQUIREMENTS = """\
# as a tool writes it
--index-url https://example.org/simple
-c constraints.txt
PyYAML==6.0.2 ; python_version >= '3.9' \\
    --hash=sha256:{a} \\
    --hash=sha256:{b}
six==1.17.0
-r more.txt
idna
-e .
forked @ git+https://example.org/forked.git
""".format(a="a" * 64, b="B" * 64)
MORE = "Zope.Interface[test]===7.2\n"
CONSTRAINTS = "idna==3.10\nsix<2\n"

UV = """
version = 1
revision = 3
requires-python = ">=3.9"

[[package]]
name = "app"
version = "0.1"
source = { virtual = "." }
dependencies = [
    { name = "six", version = "1.0", marker = "python_full_version < '3.12'" },
    { name = "six", version = "2.0", marker = "python_full_version >= '3.12'" },
    { name = "yamlish", extra = ["fast"] },
]
[package.optional-dependencies]
legacy = [{ name = "old", marker = "python_full_version < '3.10'" }]
[package.dev-dependencies]
dev = [{ name = "tool" }]

[[package]]
name = "extra-dep"
version = "1.0"
source = { registry = "https://example.org/simple" }
sdist = { url = "https://example.org/extra_dep-1.0.tar.gz", hash = "sha256:AA", size = 3 }

[[package]]
name = "old"
version = "1.0"
source = { registry = "https://example.org/simple" }

[[package]]
name = "never"
version = "1.0"
source = { registry = "https://example.org/simple" }

[[package]]
name = "six"
version = "1.0"
source = { registry = "https://example.org/simple" }
resolution-markers = ["python_full_version < '3.12'"]

[[package]]
name = "six"
version = "2.0"
source = { registry = "https://example.org/simple" }
resolution-markers = ["python_full_version >= '3.12'"]

[[package]]
name = "tool"
version = "1.0"
source = { git = "https://example.org/tool.git" }

[[package]]
name = "yamlish"
version = "1.0+cu12"
source = { registry = "https://example.org/simple" }
wheels = [
    { url = "https://example.org/yamlish-1.0%2Bcu12-py3-none-any.whl", hash = "sha256:bb" },
    { path = "files/yamlish-1.0+cu12-py2-none-any.whl" },
]
[package.optional-dependencies]
fast = [{ name = "extra-dep", marker = "sys_platform == 'win32'" }]
slow = [{ name = "never" }]
"""

PYLOCK = """
lock-version = "1.0"
created-by = "a test"
[[packages]]
name = "pyyaml"
version = "6.0.2"
marker = "python_version >= '3.9'"
index = "https://example.org/simple"
sdist = { name = "pyyaml-6.0.2.tar.gz", url = "https://example.org/x", hashes = { sha256 = "CC" } }
[[packages.wheels]]
url = "https://example.org/PyYAML-6.0.2-py3-none-any.whl"
hashes = { sha256 = "dd" }
[[packages]]
name = "forked"
[packages.vcs]
type = "git"
url = "https://example.org/forked.git"
commit-id = "1234"
"""

POETRY = """
[[package]]
name = "PyYAML"
version = "6.0.2"
markers = "python_version >= '3.9'"
files = [{ file = "PyYAML-6.0.2-py3-none-any.whl", hash = "sha256:dd" }]
[[package]]
name = "grouped"
version = "1"
[package.markers]
main = "sys_platform == 'win32'"
dev = "python_version < '3'"
[[package]]
name = "forked"
version = "1"
[package.source]
type = "git"
url = "https://example.org/forked.git"
[metadata]
lock-version = "2.1"
"""
