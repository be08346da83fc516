"""The running broker: the only package of it with sockets, clocks and threads."""
