"""A file is there whole or not at all."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from lanewise.io.atomic import atomic_path, writable_folder
from lanewise.support.errors import InputError


def test_writes_and_leaves_nothing_else(tmp_path: Path) -> None:
    with atomic_path(tmp_path / "a", overwrite=False) as temporary:
        assert temporary.parent == tmp_path
        temporary.write_text("new")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").read_text() == "new"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_failure_keeps_the_old_file(tmp_path: Path, failure: type[BaseException]) -> None:
    (tmp_path / "a").write_text("old")

    def write() -> None:
        with atomic_path(tmp_path / "a", overwrite=True) as temporary:
            temporary.write_text("half")
            raise failure

    with pytest.raises(failure):
        write()
    assert (tmp_path / "a").read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_existing_file_needs_overwrite(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(InputError, match=re.escape(f"{path}: the file exists already; give --overwrite to replace it")):
        with atomic_path(path, overwrite=False):
            raise AssertionError("not reached")
    with atomic_path(path, overwrite=True) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new"


def test_missing_folder(tmp_path: Path) -> None:
    path = tmp_path / "none" / "a"
    message = f"{path}: the folder {path.parent} does not exist; create it first"
    with pytest.raises(InputError, match=re.escape(message)), atomic_path(path, overwrite=True):
        raise AssertionError("not reached")


def test_folder_is_no_target(tmp_path: Path) -> None:
    message = f"{tmp_path}: exists and is not a regular file; wanted the name of a file to write"
    with pytest.raises(InputError, match=re.escape(message)), atomic_path(tmp_path, overwrite=True):
        raise AssertionError("not reached")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_closed_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    message = f"{tmp_path / 'a'}: no permission to write into the folder {tmp_path}"
    with pytest.raises(InputError, match=re.escape(message)), atomic_path(tmp_path / "a", overwrite=True):
        raise AssertionError("not reached")


def test_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with atomic_path(tmp_path / "link", overwrite=True) as temporary:
        temporary.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_rights_are_those_of_a_plain_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    with atomic_path(tmp_path / "a", overwrite=False):
        pass
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_folder_is_made(tmp_path: Path) -> None:
    with writable_folder(tmp_path / "new") as folder:
        assert folder == tmp_path / "new"
        assert folder.is_dir()
        (folder / "file").touch()
    with writable_folder(tmp_path / "new") as folder:
        (folder / "file").unlink()
    assert folder.is_dir()  # it was there before
    (tmp_path / "file").touch()
    for path, reason in (
        (tmp_path / "file", "exists and is not a folder; wanted the name of a folder to write into"),
        (tmp_path / "no" / "folder", f"the folder {tmp_path / 'no'} does not exist; create it first"),
    ):
        with pytest.raises(InputError) as refusal, writable_folder(path):
            pass
        assert str(refusal.value) == f"{path}: {reason}"


@pytest.mark.parametrize("error", [InputError, KeyboardInterrupt])
def test_a_folder_that_stays_empty_is_gone_again(tmp_path: Path, error: type[BaseException]) -> None:
    def refused(*left: str) -> None:
        with writable_folder(tmp_path / "new") as folder:
            for name in left:
                (folder / name).touch()
            raise error("refused")

    for left in ((), ("file",)):
        with pytest.raises(error):
            refused(*left)
        assert [p.name for p in tmp_path.rglob("*")] == (["new", *left] if left else [])
