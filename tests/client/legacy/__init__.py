"""A package of functions that are no jobs of an App, as an EventMQ shop has them; a worker runs them by --allow-import."""
