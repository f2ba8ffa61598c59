"""CSV: columns in any order, and errors that name line and column."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lanewise.io.csv import read_csv, write_csv
from lanewise.io.particles import Particles
from lanewise.support.errors import InputError

HEAD = "x,y,z,vx,vy,vz,mass"
NAMES = f"{HEAD} and perhaps id,component"


def test_columns_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        '\ufeffID, mass,"x",y,z,VX,vy,vz\r\n7,1,2,3,4,5,6,1e-3\r\n\r\n 8 ,1,2,3,4,5,6, 7\r\n'
    )
    bodies = read_csv(tmp_path / "a.csv")
    assert bodies.ids.tolist() == [7, 8]
    assert bodies.position.tolist() == [[2.0, 3.0, 4.0]] * 2
    assert bodies.velocity.tolist() == [[5.0, 6.0, 1e-3], [5.0, 6.0, 7.0]]
    assert bodies.mass.tolist() == [1.0, 1.0]


def test_text_as_written(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", Particles.of([[0.1, 2.0, 1e-300]], [[0.0, -0.0, 1 / 3]], 1.0))
    assert (tmp_path / "a.csv").read_text().split("\n", 1)[
        1
    ] == f"{HEAD},id\n0.1,2.0,1e-300,0.0,-0.0,0.3333333333333333,1.0,0\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2,3,4,5,6,7\n", f"line 1 is '1,2,3,4,5,6,7'; wanted the names of the columns: {NAMES}"),
        ("x,y,z,vx,vy,mass\n", f"line 1: no column vz; wanted {NAMES}"),
        (f"{HEAD},colour\n", f"line 1, column 8: unknown column 'colour'; wanted {NAMES}"),
        (f"{HEAD},x\n", "line 1, column 8: a second column x"),
        (f"{HEAD}\n", "there are no bodies; at least one is wanted"),
        (f"{HEAD}\n1,2,3,4,5,6,7\n\n1,2,3,4,5,6\n", f"line 4 has 6 values; wanted 7 ({HEAD})"),
        (f"{HEAD}\n1,2,3,4,5,6,7\n1,2,3,4,five,6,7\n", "line 3, column 5 (vy): 'five'; wanted a finite number"),
        (f"{HEAD}\n1,2,3,4,5,6,nan\n", "line 2, column 7 (mass): 'nan'; wanted a finite number"),
        (f"{HEAD}\n1e999,2,3,4,5,6,7\n", "line 2, column 1 (x): '1e999'; wanted a finite number"),
        (f"{HEAD}\n1,2,3,4,5,6,-7\n", "mass of body 0 is -7.0; wanted zero or more"),
        (f"{HEAD},id\n1,2,3,4,5,6,7,1.5\n", "line 2, column 8 (id): '1.5'; wanted an integer"),
        (f"{HEAD},id\n1,2,3,4,5,6,7,{2**63}\n", f"line 2, column 8 (id): '{2**63}'; wanted an integer"),
        (f"{HEAD}\n{'9' * 99}a,2,3,4,5,6,7\n", f"line 2, column 1 (x): '{'9' * 37}...'; wanted a finite number"),
    ],
)
def test_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(InputError, match="^" + re.escape(f"{path}: {message}") + "$"):
        read_csv(path)


def test_comments_and_blank_lines_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "commented.csv"
    path.write_text(f'# of "two, "bodies\n\n{HEAD}\n1,2,3,4,5,6,7\n  # the second, "far one\n2,2,3,4,5,6,8\n')
    assert read_csv(path).mass.tolist() == [7, 8]


def test_lines_after_comments_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "commented.csv"
    path.write_text(f"# a comment\n{HEAD},colour\n")
    with pytest.raises(InputError, match="line 2, column 8: unknown column 'colour'"):
        read_csv(path)
    path.write_text(f"# a comment\n{HEAD}\n# another\n1,2,3,4,5,6,x\n")
    with pytest.raises(InputError, match=r"line 4, column 7 \(mass\): 'x'"):
        read_csv(path)
