"""Proofs that an arrangement is sound: no two leaves share a byte, none leaves the allocation, each is aligned."""

from __future__ import annotations

from lanewise.errors import VerificationError
from lanewise.layouts.base import Arrangement


def prove(arrangement: Arrangement, count: int) -> None:
    """Check every leaf of `count` elements byte by byte; raises `VerificationError` naming the first offender."""
    owner: dict[int, str] = {}
    nbytes = arrangement.nbytes(count)
    for slot in arrangement.slots:
        for index in range(count):
            name = f"{slot.leaf}[{index}]"
            address = arrangement.address(slot.leaf, index, count)
            if address % slot.type.size:
                raise VerificationError(f"{name} lies at byte {address}, not a multiple of its size {slot.type.size}")
            if address < 0 or address + slot.type.size > nbytes:
                raise VerificationError(f"{name} lies at byte {address}, outside the allocation of {nbytes} bytes")
            for byte in range(address, address + slot.type.size):
                if byte in owner:
                    raise VerificationError(f"{name} and {owner[byte]} share byte {byte}")
                owner[byte] = name
