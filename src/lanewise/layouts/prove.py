"""Proofs that an arrangement is sound.

No two leaves share a byte, none leaves the allocation, each is aligned; and so is each vector load.
"""

from __future__ import annotations

from lanewise.layouts.base import VECTOR_BYTES, Arrangement, Slot
from lanewise.support.articles import an
from lanewise.support.errors import VerificationError


def prove(arrangement: Arrangement, count: int) -> None:
    """Check every leaf of `count` elements byte by byte; raises `VerificationError` naming the
    first offender.
    """
    owner: dict[int, str] = {}
    nbytes = arrangement.nbytes(count)
    for slot in arrangement.slots:
        for index in range(count):
            name = f"{slot.leaf}[{index}]"
            address = arrangement.address(slot.leaf, index, count)
            if address % slot.type.size:
                raise VerificationError(
                    f"{name} lies at byte {address}, not a multiple of its size {slot.type.size}"
                )
            if address < 0 or address + slot.type.size > nbytes:
                raise VerificationError(
                    f"{name} lies at byte {address}, outside the allocation of {nbytes} bytes"
                )
            for byte in range(address, address + slot.type.size):
                if byte in owner:
                    raise VerificationError(f"{name} and {owner[byte]} share byte {byte}")
                owner[byte] = name
    for slot in arrangement.slots:
        _prove_load(arrangement, slot, arrangement.lanes(slot), count)


def _prove_load(arrangement: Arrangement, slot: Slot, lanes: int, count: int) -> None:
    """The load of `lanes` scalars round a slot: aligned, inside the allocation, over scalars of one
    type and of one element.
    """
    size = lanes * slot.type.size
    if lanes == 1:
        return
    offset = slot.offset // size * size
    buffer = arrangement.buffers[slot.buffer]
    what = f"the load of {lanes} x {slot.type} round {slot.leaf}"
    block = buffer.own or buffer.block
    if size > VECTOR_BYTES or offset + size > block:
        raise VerificationError(
            f"{what} takes {size} bytes from byte {offset} of a structure of {block}"
        )
    for index in range(count):
        start = arrangement.address(slot.leaf, index, count) - slot.offset + offset
        if start % size:
            raise VerificationError(
                f"{what}[{index}] starts at byte {start}, not a multiple of {size}"
            )
    for other in arrangement.slots:
        if (
            other.buffer == slot.buffer
            and offset < other.offset + other.type.size
            and other.offset < offset + size
            and other.type != slot.type
        ):
            raise VerificationError(f"{what} brings {other.leaf}, {an(other.type)}")
