"""Append-only log of facts: blocks of records in segment files, with commit, recovery and retention.

The journal treats records as bytes: `u32 size`, `u8 kind`, the rest opaque. See docs/reference/journal.md.
The operator tools are in `tools`: `backup`, `verify` and `salvage`, among others.
"""
