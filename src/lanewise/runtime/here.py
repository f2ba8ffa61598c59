"""The context of a device on which work is put already: nothing has to be entered or left."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

HERE: AbstractContextManager[Any] = nullcontext()
"""What `use` of a device gives then. Every call asks several times, and comparing with it is faster
than entering it.
"""
