"""The player of an exported test: a simulated broker, its clients and workers, its operator."""
