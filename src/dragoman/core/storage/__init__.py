"""The durable state: checkpoints, replay, and reading and carrying of records."""
