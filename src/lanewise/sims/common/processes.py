"""What products ask of the processes that run a command together (design 0063)."""

from __future__ import annotations

from lanewise.runtime.ranks import joined, transport, writes
from lanewise.runtime.transport import Alone, Transport, lead

__all__ = ["Alone", "Transport", "joined", "lead", "transport", "writes"]
