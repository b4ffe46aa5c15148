"""Parse metrics as Prometheus does."""

from prometheus_client.parser import text_string_to_metric_families

Samples = dict[tuple[str, ...], float]


def samples(text: str) -> Samples:
    """Return each value by its name and label values, as parsed by the Prometheus client."""
    return {
        (sample.name.removeprefix("pypi_assets_"), *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
