import tomllib

from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.locks.lock_content import toml_text


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_read_back(text: str):
    assert tomllib.loads(f"text = {toml_text(text)}") == {"text": text}
