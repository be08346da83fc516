"""The `/metrics` endpoint and the health probes."""
