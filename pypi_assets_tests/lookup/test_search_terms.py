import pytest

from pypi_assets.lookup.search_terms import LONGEST_TEXT, Kind, Meaning, meanings

SHA256 = "0123456789abcdef" * 4


WRITTEN_OUT = [
    (SHA256, "file", SHA256, None),
    (f"  sha256:{SHA256.upper()} ", "file", SHA256, None),
    ("requests==2.32.5", "release", "requests", "2.32.5"),
    ("requests[socks] === 2.32.5 ; python_version > '3'", "release", "requests", "2.32.5"),
    ("pip install requests==2.32.5", "release", "requests", "2.32.5"),
    ("python -m pip install -U 'requests>=2'", "project", "requests", None),
    ("uv add ruff", "project", "ruff", None),
    ("uvx http --help", "command", "http", None),
    ("import yaml as y", "import", "yaml", None),
    ("import google.cloud.storage, os", "import", "google.cloud.storage", None),
    ("from google.cloud import storage", "import", "google.cloud", None),
    ("pkg:pypi/django@4.2.1?arch=x", "release", "django", "4.2.1"),
    ("pkg:pypi/django", "project", "django", None),
    ("https://index.invalid/project/requests/2.32.5/", "release", "requests", "2.32.5"),
    ("https://index.invalid/simple/requests/", "project", "requests", None),
    ("six-1.17.0-py2.py3-none-any.whl", "release", "six", "1.17.0"),
    ("six-1.17.0.tar.gz", "release", "six", "1.17.0"),
]


def test_a_text_that_is_written_out_has_one_meaning(subtests: pytest.Subtests):
    for text, kind, name, version in WRITTEN_OUT:
        with subtests.test(text=text, kind=kind):
            assert meanings(text) == [Meaning(Kind(kind), name, version)]


PLAIN_NAMES = [
    ("yaml", ["import", "project", "command"]),
    ("google.cloud.storage", ["import", "project", "command"]),
    ("python-dateutil", ["project", "command"]),
    ("requests >= 2, < 3", ["project"]),
    ("demo:main", ["command"]),
    ("größe", ["import", "command"]),
    ("two words", []),
    ("", []),
    ("x" * (LONGEST_TEXT + 1), []),
    ("not-1.0-a-wheel.whl", ["project", "command"]),
]


def test_a_plain_name_may_mean_several_things(subtests: pytest.Subtests):
    for text, kinds in PLAIN_NAMES:
        with subtests.test(text=text, kinds=kinds):
            assert [meaning.kind for meaning in meanings(text)] == kinds
