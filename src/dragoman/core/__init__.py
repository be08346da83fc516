"""Commands in, facts out: the deciding room. Pure: no I/O, no clock, no chance; time is an argument."""
