"""Doubles and checks that ship: the simulator, incidents played again in it, a disk that fails on demand, a broker for users' own tests."""
