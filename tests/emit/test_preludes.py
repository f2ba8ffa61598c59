"""The functions that generated text gets when it uses them: read line by line, once."""

from __future__ import annotations

import pytest

from lanewise.emit import cuda_prelude, llvm_prelude

CUDA = "".join(f"{name}()\n" for name in cuda_prelude.DEFINITIONS)


def test_the_prelude_of_cuda(golden):
    golden("cuda", cuda_prelude.prelude(CUDA))


@pytest.mark.parametrize("fast_math", [False, True])
def test_the_prelude_of_llvm(golden, fast_math):
    golden(f"llvm{'_fast_math' * fast_math}", llvm_prelude.prelude({*llvm_prelude.DEFINITIONS}, fast=fast_math))


def test_a_text_of_llvm_gets_what_it_uses_once():
    for name, parts in llvm_prelude.DEFINITIONS.items():
        text = llvm_prelude.prelude({name}, fast=False)
        assert text.count(f"@{name}(") == 1
        assert text.count("define ") == sum(p.count("define ") for p in parts)
    assert llvm_prelude.prelude(set(), fast=False) == ""


def test_a_text_gets_what_it_uses_and_nothing_else():
    for name, definition in cuda_prelude.DEFINITIONS.items():
        assert cuda_prelude.prelude(f"x = {name}(y);") == f"{definition}\n"
        assert cuda_prelude.prelude(f"x = {name}<4>(y);") == f"{definition}\n"
    assert cuda_prelude.prelude("lw_unknown(x)") == ""
