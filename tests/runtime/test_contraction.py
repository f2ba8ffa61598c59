"""Which products become one with a sum, see `lanewise.runtime.contraction`."""

from __future__ import annotations

import re

import pytest
from llvmlite import binding

from lanewise.runtime.contraction import contracted

STRAIGHT = """define KIND @f(KIND %a, KIND %b, KIND %c, KIND %d) {
BODY
  ret KIND %s
}
"""
LOOP = """define void @f(ptr %x, float %p, float %q, i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %behind ]
  %at = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %at
  %product = fmul contract float LEFT, RIGHT
  %some = fcmp contract olt float %v, %q
  br i1 %some, label %then, label %behind
then:
  %root = call float @llvm.sqrt.f32(float %v)
  br label %behind
behind:
  %y = phi float [ %v, %head ], [ %root, %then ]
  %s = fsub contract float %y, %product
  store float %s, ptr %at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %head, label %end
end:
  ret void
}
declare float @llvm.sqrt.f32(float)
"""


def rewritten(text: str) -> list[str]:
    """The sums of a text with the rule applied, which LLVM can read."""
    text = contracted(str(binding.parse_assembly(text)))
    binding.parse_assembly(text).verify()
    lines = [line.strip() for line in text.splitlines()]
    return [x for x in lines if re.search(r"= (fadd|fsub|fneg|call.*fmuladd)", x)]


def straight(*body: str, kind: str = "float") -> list[str]:
    lines = "\n".join(f"  {line}" for line in body)
    return rewritten(STRAIGHT.replace("BODY", lines).replace("KIND", kind))


@pytest.mark.parametrize("kind", ["float", "double", "<8 x float>"])
def test_a_product_and_a_sum_are_one(kind: str) -> None:
    (line,) = straight(f"%p = fmul contract {kind} %a, %b", f"%s = fadd contract {kind} %c, %p", kind=kind)
    assert re.fullmatch(rf"%s = call {kind} @llvm\.fmuladd\.\w+\({kind} %a, {kind} %b, {kind} %c\)", line)


def test_differences() -> None:
    lines = straight("%p = fmul contract float %a, %b", "%s = fsub contract float %p, %c")
    assert lines[0].endswith("= fneg float %c")
    assert lines[1].startswith("%s = call float @llvm.fmuladd.f32(float %a, float %b, ")
    lines = straight("%p = fmul contract float %a, %b", "%s = fsub contract float %c, %p")
    assert lines[0].endswith("= fneg float %a")
    assert lines[1].endswith(", float %b, float %c)")
    lines = straight("%p = fmul contract float %a, 5.0e-01", "%s = fsub contract float %c, %p")
    assert lines[0].endswith("= fneg float 5.000000e-01")
    assert lines[1].endswith(", float %a, float %c)")


def test_of_two_products_the_first() -> None:
    (line,) = straight(
        "%p = fmul contract float %a, %b", "%q = fmul contract float %c, %d", "%s = fadd contract float %q, %p"
    )
    assert line.endswith("(float %c, float %d, float %p)")


@pytest.mark.parametrize("flags", ["", "reassoc nsz contract ", "fast "])
def test_sums_of_others_stay(flags: str) -> None:
    """Without the leave, in an order that is free, with all shortcuts."""
    body = "%p = fmul contract float %a, %b", f"%s = fadd {flags}float %p, %c"
    assert straight(*body) == [body[1]]


def test_a_product_that_is_used_twice_is_rounded() -> None:
    lines = straight(
        "%p = fmul contract float %a, %b", "%t = fadd contract float %p, %c", "%s = fsub contract float %t, %p"
    )
    assert lines == ["%t = fadd float %p, %c", "%s = fsub float %t, %p"]


def test_over_branches_of_the_same_loop() -> None:
    lines = rewritten(LOOP.replace("LEFT", "%p").replace("RIGHT", "%v"))
    # not of %p, which would take one more register through the loop
    assert lines[0].endswith("= fneg float %v")
    assert lines[1].endswith(", float %p, float %y)")


def test_what_stays_the_same_in_a_loop_is_rounded_before_it() -> None:
    assert rewritten(LOOP.replace("LEFT", "%p").replace("RIGHT", "%q")) == ["%s = fsub float %y, %product"]


@pytest.mark.parametrize(("processor", "wanted"), [("haswell", ["vfmadd"]), ("nehalem", ["mul", "add"])])
@pytest.mark.parametrize("kind", ["float", "<4 x float>", "double"])
def test_one_instruction_or_two(processor: str, wanted: list[str], kind: str) -> None:
    """A processor without fused operations multiplies and adds; it calls no function for both."""
    if "x86" not in binding.get_default_triple():
        pytest.skip("processors of x86")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    body = f"  %p = fmul contract {kind} %a, %b\n  %s = fadd contract {kind} %p, %c"
    text = contracted(STRAIGHT.replace("BODY", body).replace("KIND", kind))
    machine = binding.Target.from_default_triple().create_target_machine(cpu=processor, features="", opt=3)
    lines = re.findall(r"^\t(vfmadd|v?mul|v?add|call|jmp)", machine.emit_assembly(binding.parse_assembly(text)), re.M)
    assert lines == wanted
