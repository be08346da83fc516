"""Rendering of values, timelines and protocol frames for the pages."""
