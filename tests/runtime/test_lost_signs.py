"""The assembler's lost signs: its input is recognised, texts keep clear of it, and other versions are left alone."""

from __future__ import annotations

from typing import Any

import pytest

from lanewise.runtime import lost_signs, nvrtc, nvrtc_child

CLAMPED = """extern "C" __global__ void clamped_kernel(const int *b, int *c, int extent, int n, int stride)
{
    const int at = (int)blockIdx.x * 256 + (int)threadIdx.x;
    const int x = min(at, extent - 1);
    int s = 0;
    for (int k = 0; k < x; ++k) s += b[k * stride + min(max(x, 0), n - 1)];
    if (at < extent) c[x] = s;
}
"""
NEGATED = """extern "C" __global__ void negated_kernel(const int *a, int *c, int n)
{
    const int t = (int)threadIdx.x;
    c[t] = max(max(-a[t], t * n), t + n);
}
"""
PLAIN = CLAMPED.replace("clamped", "plain").replace("k < x", "k < n")


def ptx(text: str, arch: str = "sm_90") -> str:
    asked = {
        "library": nvrtc._library(), "name": "k.cu", "options": nvrtc.options(arch, nvrtc.NONE), "ptx": True,
        "version": nvrtc.nvrtc_version(),
    }  # fmt: skip
    return nvrtc_child.compiled(asked, text.encode())[0]["ptx"]


@pytest.mark.parametrize(("version", "arch", "found"), [
    ("13.0", "sm_90", True), ("13.3", "sm_100", True), ("13.5", "sm_90", False), ("14.0", "sm_90a", False),
    ("13.0", "sm_80", False), ("12.9", "sm_90a", True),
])  # fmt: skip
def test_who_is_suspected(version: str, arch: str, found: bool) -> None:
    assert lost_signs.suspected(arch, version) is found


@pytest.mark.parametrize(("statements", "found"), [
    ("neg.s32 %r1, %r0; max.s32 %r2, %r5, %r1; max.s32 %r3, %r2, %r6;", True),
    ("neg.s32 %r1, %r0; min.s32 %r2, %r1, %r5; min.s32 %r3, %r6, %r2;", True),
    ("sub.s32 %r1, 0, %r0; max.s32 %r2, %r5, %r6; max.s32 %r3, %r2, %r1;", True),
    ("neg.s32 %r1, %r0; max.s32 %r2, %r5, %r1; min.s32 %r3, %r2, %r6;", False),
    ("neg.s32 %r1, %r0; max.s32 %r2, %r5, %r1; add.s32 %r3, %r2, %r1;", False),
    ("max.s32 %r2, %r5, %r1; max.s32 %r3, %r2, %r6;", False),
])  # fmt: skip
def test_the_pattern(statements: str, found: bool) -> None:
    assert lost_signs.loses_sign(statements) is found


def test_minima_apart_keep_clear_of_it() -> None:
    """The compiler's own signs go; those of the text stay, and then nothing is optimised."""
    assert lost_signs.loses_sign(ptx(CLAMPED))
    assert not lost_signs.loses_sign(ptx(lost_signs.apart(CLAMPED)))
    assert lost_signs.loses_sign(ptx(NEGATED))
    assert lost_signs.loses_sign(ptx(lost_signs.apart(NEGATED)))
    assert not lost_signs.loses_sign(ptx(PLAIN))


@pytest.mark.parametrize(
    ("text", "asked"), [(CLAMPED, 2), (NEGATED, 3), (PLAIN, 1)], ids=["clamped", "negated", "plain"]
)
def test_what_is_compiled_again(text: str, asked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As often as it takes; the last way is without the assembler's optimisation, whatever the plan requested."""
    options: list[list[str]] = []
    answer = nvrtc._answer

    def watched(question: dict[str, Any], text: str) -> Any:
        options.append(question["options"])
        return answer(question, text)

    monkeypatch.setattr(nvrtc, "_answer", watched)
    monkeypatch.setattr(lost_signs, "suspected", lambda arch, version: True)
    name = text.split("void ")[1].split("_kernel")[0]
    code, log = nvrtc._compile(text, name, "sm_90", nvrtc.Switches(in_order=True))
    assert nvrtc.parse_spills(log, name) == (0, 0)
    assert nvrtc.code_resources(code, f"{name}_kernel").registers > 0
    assert len(options) == asked
    assert [o for o in options[-1] if "-O" in o] == ["--ptxas-options=-O0" if asked == 3 else "--ptxas-options=-O1"]
    options.clear()
    monkeypatch.setattr(lost_signs, "suspected", lambda arch, version: False)
    nvrtc._compile(text, name, "sm_90", nvrtc.NONE)
    assert len(options) == 1
