"""Which project a requirement names, as packaging reads it where packaging can, and without failing where it cannot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from pypi_assets.distributions.requirement_names import parse_requirement, required_projects


def test_the_name_and_the_condition(subtests: pytest.Subtests) -> None:
    cases = [
        ("requests", ("requests", 0)),
        (" Zope.Interface_x[a, b] >= 1 , <2", ("zope-interface-x", 0)),
        ("foo (>=1.0)", ("foo", 0)),
        ("foo(>=1.0);python_version<'3'", ("foo", 1)),
        ("foo; sys_platform == 'extra'", ("foo", 1)),
        ('foo>=1; python_version < "3" and extra == "x"', ("foo", 2)),
        ("foo; 'x' == extra", ("foo", 2)),
        ("foo;", ("foo", 0)),
        ("foo @ https://example.org/a;b.zip", ("foo", 0)),
        ("foo@https://example.org/a;b.zip ; extra == 'x'", ("foo", 2)),
        ("foo===any thing", ("foo", 0)),
        ("foo~=1", ("foo", 0)),
        ("a\n", ("a", 0)),
        ("", None),
        ("foo 1.0", None),
        ("foo-", None),
        ("foo[", None),
        ("größe", None),
        (">=1", None),
        ("https://example.org/foo.zip", None),
        ("a" * 10_000 + "-" * 10_000, None),
    ]
    for requirement, expected in cases:
        with subtests.test(requirement=requirement):
            assert parse_requirement(requirement) == expected


names = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,8}[A-Za-z0-9])?", fullmatch=True)
extras = st.sampled_from(["", "[x]", " [x,y-z]"])
versions = st.sampled_from(["", ">=1", " == 1.*", "~=1.2,!=1.3", " (>=1)", "===what;ever"])
markers = st.sampled_from(["", "; os_name == 'nt'", ' ;extra=="extra"', "; python_version>'3' or extra == 'x'"])


@pytest.mark.nightly
@given(st.builds("{}{}{}{}".format, names, extras, versions, markers) | st.text(max_size=20))
def test_it_agrees_with_packaging(text: str) -> None:
    parsed = parse_requirement(text)
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return
    condition = 0 if requirement.marker is None else 2 if "extra ==" in str(requirement.marker) else 1
    assert parsed == (canonicalize_name(requirement.name), condition)


def test_what_requires_least_counts() -> None:
    requirements = ["a; extra == 'x'", "A>1; os_name == 'nt'", "b", "b; extra == 'x'", "???", "c; extra == 'x'"]
    assert required_projects(requirements) == {"a": 1, "b": 0, "c": 2}
