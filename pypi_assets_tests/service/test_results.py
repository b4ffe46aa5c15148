from pypi_assets.service.answers import to_json
from pypi_assets.service.results import Results, published_answer
from pypi_assets_tests.service.published import Published


def test_an_answer_names_the_set_and_the_serial_that_it_is_from(published: Published):
    with published.service() as service:
        datasets = service.datasets()
        content = Results[str](serial=datasets.serial, set=datasets.id, results=["found"])
        answer = published_answer(datasets, content)
        assert (answer.serial, answer.modified) == (datasets.serial, datasets.published.published_at)
        assert answer.set_id == datasets.id
        assert b"hints" not in to_json(content)
