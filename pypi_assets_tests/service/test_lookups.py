from pypi_assets.lookup.modules_reader import ModulesReader
from pypi_assets.service.answers import to_json
from pypi_assets.service.lookups import published_answer, results_of
from pypi_assets_tests.service.published import Published


def test_an_answer_names_the_set_and_the_serial_that_it_is_from(published: Published):
    with published.service() as service:
        datasets = service.datasets()
        found = datasets.reader(ModulesReader).module("yaml.nodes")
        content = results_of(datasets, found)
        answer = published_answer(datasets, content)
        assert (content.set, content.serial) == (datasets.id, published.index.serial)
        assert (answer.serial, answer.modified) == (datasets.serial, datasets.published.published_at)
        assert b"hints" not in to_json(content)
        assert results_of(datasets, found, ["perhaps"]).hints == ("perhaps",)
