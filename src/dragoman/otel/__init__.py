"""Trace export: a process beside the broker turns the journal's synced facts into spans and sends them to an OpenTelemetry collector."""
