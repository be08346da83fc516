"""Connections that the broker opens itself, and files that it watches."""
