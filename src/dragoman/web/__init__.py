"""The web dashboard: a separate process beside the broker that queries the admin socket and reads the journal's files.

Reading order: `process` (start, routes and stop), `guard` (access control), `link` (requests to the broker), `samples.sampling` and
`samples.history` (metrics over time), `samples.sample_file` (data that survives a restart of this process), `dashboard`, `pages` and
`responses` (pages), `stream` (their updates), `actions` (operator changes).
"""
