"""Doubles and checks that ship: the simulator, a disk that fails on demand, a broker for users' own tests."""
