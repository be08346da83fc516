"""Synthetic facts, made by the real core under a simulated clock: consistent by construction, and the same for the same seed.

`broker` has the parameters and what all parts share, `services` defines the queues and their load, `world` is the main loop, `lake` writes the facts.
"""
