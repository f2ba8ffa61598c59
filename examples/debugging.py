"""Find a bug: call the kernel function as ordinary Python, or run the whole kernel on the
interpreter.

python examples/debugging.py
"""

import traceback

import numpy as np

import lanewise as lw


@lw.record
class Body:
    """A place and a mass."""

    position: lw.vec3
    mass: lw.f32


@lw.pairwise
def gravity(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    # 1 / 0 where a body meets itself and nothing is softened
    inv = 1 / lw.sqrt(lw.dot(d, d) + softening2)
    return source.mass * inv**3 * d


def main() -> None:
    position = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0]], np.float32)
    bodies = Body.array(position=position, mass=1.0)
    print("compiled:", gravity(bodies, bodies, softening2=0.0)[0])

    # The same function, one pair at a time. print(), pdb, breakpoint() and NumPy's error states
    # work inside it.
    for i, source in enumerate(bodies):
        try:
            with np.errstate(divide="raise"):
                print(f"pair 0, {i}:", gravity.python(bodies[0], source, lw.f32(0)))
        except FloatingPointError as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            print(f"pair 0, {i}: {error}, in line {frame.lineno}: {frame.line}")

    # The whole kernel on the interpreter, which defines what compiled kernels mean: the same fault,
    # so it is ours.
    slow = bodies.to("python")
    print("interpreted:", gravity(slow, slow, softening2=0.0)[0])

    # And what the language does not have is refused before anything runs.
    @lw.pairwise
    def broken(target: Body, source: Body) -> lw.vec3:
        d = source.position - target.position
        return lw.dot(d, d)

    try:
        broken(bodies, bodies)
    except lw.CompileError as error:
        print(error)


if __name__ == "__main__":
    main()
