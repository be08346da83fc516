"""Writing the journal: blocks, segments, checkpoints and the superblock."""
