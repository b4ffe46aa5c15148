"""What is still to be done: the queues of visits and reads, full crawls, audits, listed projects, retries.

The queues only hold the work; `crawl/` does it. Claims on their entries are in `coordination`.
"""
