"""The environment of a simulated broker: time, an event loop, a disk and a network, and their failures."""
