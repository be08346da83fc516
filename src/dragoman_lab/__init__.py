"""The lab: simulated brokers, replays of incidents and recordings, and generated facts.

`sim` runs a whole broker from a seed, `replay` replays a slice of a journal in it (`dragoman export-test`), `recordings` plays recorded peers
against a running broker (`dragoman replay-peer`), `generate` writes synthetic facts (`dragoman generate`). The broker never imports it.
"""
