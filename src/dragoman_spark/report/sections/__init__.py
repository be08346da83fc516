"""The sections of the report, one question each."""
