"""Recovery: reads the files at start and decides which blocks are valid."""
