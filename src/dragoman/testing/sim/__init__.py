"""A whole broker without sockets, threads or a clock, driven from one seed: the same seed is the same run.

Reading order: `loop` (time), `disk` and `net` (what can fail), `surroundings` and `life` (one run of a broker), `client` and `worker` (what all guests
have in common), `emqp`, `scale0`, `pingpong`, `ebus`, `rq` (each dialect's own), `legacy`, `rude`, `garbage` and `operator`, `tokens`, `ledger`, `facts`,
`recount` and `replica` (what must hold), `plan` and `world` (all of it together), `report`;
`steps` (a run written down step by step, for a failure that shall be met again however the simulator grows).
"""
