"""A whole broker without sockets, threads or a real clock, driven from one seed: the same seed is the same run.

Reading order: `machine/`: `loop` (time), `disk`, `net` with `legacy` and `risp` (what can fail), `life` (one run of a broker), `failures`;
`peers/`: `sim_peers` (what all peers have in common), `emqp`, `scale0`, `pingpong`, `ebus`, `rq` (each dialect's own), `sdk`, `rude` and
`operator`; `checks/`: `ledger`, `facts` and `recount` (what must hold); `plan` and `world` (all of it together); `steps` (a run
as explicit steps, to reproduce a failure independently of later changes to the simulator).
"""
