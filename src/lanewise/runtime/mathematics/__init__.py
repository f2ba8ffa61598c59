"""Elementary functions in LLVM's language, of numbers and of registers of any width.

A text calls `@lw.NAME.f32`, or `@lw.NAME.v16f32`, and declares it; `runtime/llvm.py` tells LLVM
which functions of registers do the same as those of numbers, lets it make vectors of loops, and
puts the functions in place (`library.py`). They are made of IEEE's operations without flags: all
give the same bits, in every pattern, in every lane, in registers of any width and without.
"""
