"""What is still to be done: the queues of visits and reads, full crawls, audits, listed projects, retries.

A queue says what to do, not how: `crawl/` visits and reads. Who holds an entry is decided in `coordination`.
"""
