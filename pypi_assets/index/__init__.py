"""Client for a package index: its changelog, its list of projects, project pages and files.

What an answer means for the catalog does not belong here; see `crawl/`.

- `client`: `IndexClient`, with one method for each kind of request. Other packages start here.
- `transport`: sends requests politely and raises the typed errors of `errors`. Mirrors and webhooks use it too. It uses
  `connections` (proxies, TLS), `addresses` and `urls` (where requests may go), `deadlines`, `credentials` and `rate`.
- `changelog`, `pages`: each reads one kind of answer, and rejects answers that break the protocol.
- `files`: distributions, as a stream or by byte ranges.
- `actions`: how a changelog event changes files.
- `models`: the values that all of these return.
"""
