"""Facts of days that never were, made by the real core under a simulated clock: true by construction, the same for the same seed.

`plan` says what is wanted, `services` and `tides` what the world is like, `world` turns its clock, `lake` writes what comes of it.
"""
