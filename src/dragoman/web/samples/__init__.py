"""Samples of the broker's metrics: taken, saved and drawn as charts."""
