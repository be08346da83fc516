"""A whole broker without sockets, threads or a clock, driven from one seed: the same seed is the same run.

Reading order: `loop` (time), `disk` and `net` (what can fail), `life` (one run of a broker), `clients`, `workers` and `operator`
(who uses it), `ledger`, `facts`, `recount` and `replica` (what must hold), `world` (all of it together), `report`.
"""
