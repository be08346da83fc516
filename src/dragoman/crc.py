"""CRC-32 (zlib's polynomial) for the journal: `crc32` by zlib-ng if its wheel is installed, `short_crc32` by zlib. Both give the same result.

zlib-ng computes 1 KiB in 30 ns and 64 KiB in 1 µs, zlib in 360 ns and 15 µs. Below 256 bytes zlib is faster: zlib-ng then changes
between two kinds of vector instructions, which costs 200 ns on some processors (decision 0051).
"""

from __future__ import annotations

from zlib import crc32 as short_crc32

try:
    from zlib_ng.zlib_ng import crc32
except ImportError:  # no wheel for this platform
    crc32 = short_crc32

__all__ = ["crc32", "short_crc32"]
