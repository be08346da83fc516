"""A package of functions that are no jobs of an App, as users of EventMQ have them; a worker runs them by --allow-import."""
