"""The asset that publishes the journal to Kafka, with its job and its sensor.

A code location has them if the settings name brokers and the extra `kafka` is installed. `journal/kafka.py` publishes
the records; this module only runs it in Dagster.
"""

import time
from importlib.util import find_spec

import dagster as dg

from pypi_assets.catalog.publications.journal_deliveries import find_consumer
from pypi_assets.defs.assets import GROUPS, Group
from pypi_assets.defs.attempts import attempts, failures_in_a_row
from pypi_assets.defs.expected_errors import expected_errors_as_failures
from pypi_assets.defs.factories import AssetJob, asset, sensor
from pypi_assets.defs.policy import ENDS_IN_TIME, EXPORTING, ONE_AT_A_TIME_TAG
from pypi_assets.defs.reporting import count_log
from pypi_assets.defs.resources import CatalogResource, SettingsResource, StorageResource
from pypi_assets.journal.consumers import JournalConsumer
from pypi_assets.journal.journal_errors import NoJournalError
from pypi_assets.journal.kafka import CONSUMER, KafkaPublisher, open_producer, patience_of, read_properties, topic_of
from pypi_assets.journal.record_reader import Journal
from pypi_assets.journal.segment_files import FORMAT
from pypi_assets.settings import Settings, SettingsError


def has_kafka(settings: Settings | SettingsError) -> bool:
    """Return whether the settings name brokers, and the client is installed."""
    is_wanted = isinstance(settings, Settings) and settings.kafka_bootstrap_servers is not None
    return is_wanted and find_spec("confluent_kafka") is not None


@asset(
    deps=["change_journal"],
    group=Group(GROUPS["journal"].name, "docs/journal.md#publish-it-with-dagster"),
    kinds={"kafka"},
    code_version=str(FORMAT),
)
def journal_topics(
    context: dg.AssetExecutionContext, settings: SettingsResource, catalog: CatalogResource, storage: StorageResource
) -> dg.MaterializeResult[None]:
    """The changes of the package index, in order, as Kafka messages: a topic for each stream of the journal.

    A run publishes the records that earlier runs have not published, each at least once. Its progress is stored under
    the consumer `kafka`, which the command `pypi-assets journal publish` uses as well: use only one of them.
    """
    started = time.monotonic()
    with expected_errors_as_failures():
        values, opened = settings.get(), catalog.get()
        properties = {} if values.kafka_properties is None else read_properties(values.kafka_properties)
        journal = Journal(storage.get())
        producer = open_producer(values.kafka_bootstrap_servers or "", properties)
        progress = count_log(context, "messages")
        patience_s = patience_of(properties)
        count = KafkaPublisher(
            opened, journal, producer, values.kafka_topic_prefix, progress=progress, patience_s=patience_s
        ).publish()
        with opened.read() as connection:
            consumer = find_consumer(connection, CONSUMER)
    topics = ", ".join(topic_of(values.kafka_topic_prefix, head.stream) for head in journal.heads())
    return dg.MaterializeResult(
        metadata={
            "messages": count,
            "serial": consumer.serial if consumer is not None else 0,
            "topics": dg.MetadataValue.text(topics),
            "seconds": round(time.monotonic() - started, 3),
        }
    )


publish_journal_job = AssetJob(
    "publish_journal",
    assets=["journal_topics"],
    tags=ENDS_IN_TIME | EXPORTING | {ONE_AT_A_TIME_TAG: "publish_journal"},
    description="Publishes new changes of the package index to Kafka. Needs the extra `kafka`.",
)


@sensor(
    publish_journal_job,
    description="Requests the job `publish_journal` if there are changes that Kafka does not have. Failed runs are"
    " requested again, after growing pauses.",
)
def new_journal_records(
    context: dg.SensorEvaluationContext, settings: SettingsResource, catalog: CatalogResource, storage: StorageResource
) -> dg.RunRequest | dg.SkipReason:
    naming = settings.naming
    job = naming.job(publish_journal_job)
    opened = catalog.get()
    consumer = JournalConsumer(opened, Journal(storage.get()), CONSUMER).find()
    try:
        reached, through = consumer.begin.whole_serial, consumer.end.serial
    except NoJournalError as error:
        return dg.SkipReason(str(error))
    if reached >= through:
        return dg.SkipReason(f"Kafka has all changes, up to serial {through}")
    failed = failures_in_a_row(context.instance, job.name)
    if not failed.due(opened.clock()):
        return dg.SkipReason(failed.describe(opened.clock()))
    made = attempts(context.instance, job.name)
    return dg.RunRequest(run_key=f"{reached}-{through}:{made.ended}")
