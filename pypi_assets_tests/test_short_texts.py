"""Caches that are bounded by characters."""

from pypi_assets.short_texts import cached_if_short


def test_only_short_arguments_are_cached():
    calls: list[tuple[object, ...]] = []

    @cached_if_short(maxsize=8, longest=10)
    def joined(*parts: object) -> str:
        calls.append(parts)
        return str(parts)

    for short in (("a",), ("a", "b"), (("a", "b"), 1), (b"abc",)):
        before = len(calls)
        assert joined(*short) == joined(*short)
        assert len(calls) == before + 1
    for long in (("a" * 11,), ("a" * 6, "b" * 6), (("a" * 6, "b" * 6),), (tuple("a" * 9),), (b"a" * 11,)):
        before = len(calls)
        assert joined(*long) == joined(*long)
        assert len(calls) == before + 2
