"""The only room with sockets, clock and threads."""
