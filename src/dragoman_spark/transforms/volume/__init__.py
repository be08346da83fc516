"""Counts and durations, by minute, hour and day."""
