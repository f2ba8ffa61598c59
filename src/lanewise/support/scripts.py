"""Python files that users name on the command line: run, and their functions called, with every
failure as an `InputError` that says the line.

What a file prints goes to standard error: standard output belongs to the command.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Generator
from pathlib import Path
from types import ModuleType

from lanewise.support.errors import InputError, LanewiseError


def run_file(path: Path) -> ModuleType:
    """Run a Python file as a module of its name, with its folder first on the path, as `python
    file.py` has it.
    """
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    if not path.is_file():
        raise InputError(f"{path}: wanted a Python file, found a folder")
    unique = f"{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(unique, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[unique] = module  # annotations that are evaluated late look their names up here
    with at_work_in(path, f"{path} cannot be run"):
        spec.loader.exec_module(module)
    return module


@contextlib.contextmanager
def at_work_in(path: Path, failed: str) -> Generator[None]:
    """Within the block a file's own code runs, as a script's does; what it raises becomes an
    `InputError`: `failed`, the line of the file, and Python's own last line.

    The file's folder comes first on the path, and the command's own arguments are none of the
    file's.
    """
    folder, arguments = str(path.resolve().parent), sys.argv
    sys.path.insert(0, folder)
    sys.argv = [str(path.resolve())]
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except LanewiseError as error:
        raise InputError(f"{failed}: {error}") from error
    except (Exception, SystemExit) as error:
        raise InputError(f"{failed}: {_last_line(error, path)}") from error
    finally:
        with contextlib.suppress(ValueError):  # the file has taken it off
            sys.path.remove(folder)
        sys.argv = arguments


def _last_line(error: BaseException, path: Path) -> str:
    """The last line of the traceback, with the line of the file where it happened."""
    # a message of several lines is one line of an error
    text = traceback.format_exception_only(error)[-1]
    last = " ".join(line.strip() for line in text.splitlines() if line.strip())
    if isinstance(error, SyntaxError) and error.filename == str(path.resolve()):
        return f"line {error.lineno}: {last}"
    lines = [
        f.lineno
        for f in traceback.extract_tb(error.__traceback__)
        if f.filename == str(path.resolve())
    ]
    return f"line {lines[-1]}: {last}" if lines else last
