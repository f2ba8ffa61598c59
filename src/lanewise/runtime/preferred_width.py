"""How wide the vectors are that LLVM chooses by itself for a processor: it is asked to compile a
loop.

Processors with registers of 512 bits differ in that: LLVM takes 256 for most of Intel's, whose
clocks went down with wide ones, and 512 for AMD's.
"""

from __future__ import annotations

from functools import cache

from lanewise.support.interrupts import interrupts_wait

_LOOP = """
define void @squares(ptr noalias %a, ptr noalias %b, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %from = getelementptr float, ptr %a, i64 %i
  %to = getelementptr float, ptr %b, i64 %i
  %x = load float, ptr %from
  %y = fmul float %x, %x
  store float %y, ptr %to
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""
_REGISTERS = {"zmm": 512, "ymm": 256, "xmm": 128}  # as assembly language for x86 names them


@cache
@interrupts_wait()
def preferred_bits(processor: str, features: str = "") -> int:
    """The bits of the widest registers of a vectorised loop for a processor, by LLVM's names; 128
    where LLVM writes no x86.
    """
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=processor, features=features, opt=3
    )
    module = binding.parse_assembly(_LOOP)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    options = binding.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    builder = binding.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    text = machine.emit_assembly(module)
    return next((bits for name, bits in _REGISTERS.items() if name in text), 128)
