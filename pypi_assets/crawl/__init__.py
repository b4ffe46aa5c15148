"""Crawls: list the projects of an index, visit their pages, and read their distributions.

SQL does not belong here (see `catalog/`), nor HTTP (see `index/`), nor the contents of files (see `distributions/`).

- `full_crawl`, `incremental_crawl`, `scope_crawl`, `index_audit`, `retry_failures`: the kinds of crawl, which commands
  and assets call. A full crawl can run shard by shard.
- `listers`: the loop that finds changed projects, and the choice of a lister. `stored_events` has the lister `xmlrpc`
  (the changelog), `simple_lister` the lister `simple` (the list of projects).
- `visiting` fetches project pages. `judging` decides what each answer means, and stores the verdict.
- `reading` claims pending distributions and stores their outcomes. `fetching` downloads and reads one distribution.
- `draining`: the loop over a shared queue, which visiting and reading both use.
- `crawler`: the components and limits of a crawl, and its retry policy.
"""
