"""The web page: a process of its own beside the broker, which asks the admin socket and reads the journal's files.

Reading order: `process` (its life), `app` (what is where), `guard` (who may), `link` (the question to the broker), `sampling` and
`history` (the numbers over time), `refill` and `before` (what was before this process began), `pages` and its neighbours (what is
shown), `actions` (what is changed).
"""
