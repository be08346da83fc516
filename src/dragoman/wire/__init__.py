"""Bytes to frames and back, one package per wire format. No sockets, no clock, no broker logic."""
