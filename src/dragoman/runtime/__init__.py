"""The only package with sockets, clocks and threads."""
