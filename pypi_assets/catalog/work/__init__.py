"""Pending work: the queues of visits and reads, full crawls, audits, listed projects, and retries.

The queues only store the work; `crawl/` does it. Claims on their entries are in `coordination`.
"""
