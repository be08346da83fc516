"""Seasonal baselines and forecasts."""
