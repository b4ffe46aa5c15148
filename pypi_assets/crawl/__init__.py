"""Brings the catalog up to a serial: lists projects, visits their pages, reads their distributions.

SQL does not belong here (`catalog/`), nor HTTP (`index/`), nor what is read from a file (`distributions/`).

- `full_crawl`, `incremental_crawl`, `index_audit`, `retry`: the kinds of crawl, which commands and assets call.
  `shards` runs a full crawl shard by shard.
- `listers`: the loop that finds out what changed. `stored_events` has the lister `xmlrpc` (the changelog),
  `simple_lister` the lister `simple` (the list of projects); `lister_choice` picks one.
- `visiting` fetches project pages; `judging` decides what each answer means, and stores that.
- `reading` claims pending distributions and stores their outcomes; `fetching` downloads one and has it read.
- `draining`: the loop over a shared queue, in which visiting and reading both run.
- `crawler`: the parts of a crawl, and when it retries.
"""
