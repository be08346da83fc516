"""Clients and workers of every dialect, peers that misbehave, and the operator."""
