"""facts → spans: the journal's committed facts told to an OpenTelemetry collector, by a process of its own beside the broker."""
