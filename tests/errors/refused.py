"""Kernels that are outside the language, by topic: `{topic: {what is wrong: source of a module with `kernel`}}`."""

from __future__ import annotations

import textwrap

HEAD = """\
import math
import numpy as np
import lanewise as lw

@lw.record
class Body:
    position: lw.vec3
    mass: lw.f32
    rank: lw.i32

"""


def thread(
    body: str, parameters: str = "", first: str = "y: lw.index, x: lw.index", before: str = "", returns: str = ""
) -> str:
    """A module with a threadwise kernel of this body, which has an array `c`."""
    given = f"{first}, c: lw.Array2[lw.f32]" + (f", {parameters}" if parameters else "")
    text = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return f"{HEAD}{textwrap.dedent(before)}@lw.threadwise\ndef kernel({given}){returns}:\n{text}\n"


def element(body: str, parameters: str = "x: lw.f32", returns: str = " -> lw.f32", before: str = "") -> str:
    """A module with an elementwise kernel of this body."""
    return f"{HEAD}{textwrap.dedent(before)}@lw.elementwise\ndef kernel({parameters}){returns}:\n" + textwrap.indent(
        textwrap.dedent(body).strip("\n") + "\n", "    "
    )


def pair(body: str, parameters: str = "target: Body, source: Body", returns: str = " -> lw.f32") -> str:
    """A module with a pairwise kernel of this body."""
    return element(body, parameters, returns).replace("@lw.elementwise", "@lw.pairwise")


def site(
    body: str, parameters: str = "f: lw.populations, x: lw.f32", returns: str = " -> None", before: str = ""
) -> str:
    """A module with a function of one site of D2Q9 of this body."""
    text = element(body, parameters, returns, before).replace("@lw.elementwise", "@site(lw.D2Q9)")
    return text.replace("import lanewise as lw\n", "import lanewise as lw\nfrom tests.frontend.sites import site\n")


def within(body: str, parameters: str = "body: Ball", returns: str = " -> lw.f32") -> str:
    """A module with a kernel of this body over records with others within them."""
    return element(
        body,
        parameters,
        returns,
        """\
        @lw.record
        class Shape:
            radius: lw.f32
            axis: lw.vec3

        @lw.record
        class Ball:
            shape: Shape
            old: Shape
            mass: lw.f32

        @lw.function
        def area(s: Shape):
            return s.radius * s.radius

        @lw.function
        def given(s):
            return s

        """,
    )


LOOP = "for q in lw.D2Q9:\n    "
HELPER = "@lw.function\ndef helper({}):\n    return {}\n\n"
BODY = "body: Body"
REFUSED: dict[str, dict[str, str]] = {
    "records within records": {
        "as a number": within("return body.shape"),
        "unknown field": within("return body.shape.radios"),
        "unknown field assigned": within("body.shape.radios = 1.0", returns=""),
        "of a number": within("return body.mass.radius"),
        "a number assigned": within("body.shape = 1.0", returns=""),
        "another record assigned": within("body.shape = body", returns=""),
        "what is read alone assigned": within("other.shape = body.shape", "body: Ball, other: Ball", ""),
        "a component assigned": within("body.shape.axis.x = 1.0", returns=""),
        "added to": within("body.shape += 1.0", returns=""),
        "unpacked": within("body.shape, body.old = body.old, body.shape", returns=""),
        "as a variable": within("s = body.shape\nreturn s.radius"),
        "indexed": within("return body.shape[0]"),
        "assigned to a number": within("body.shape.radius = body.old", returns=""),
        "a record of a helper": within("return area(body)"),
        "a record made": within("body.shape = Shape(radius=1.0)", returns=""),
        "a record returned by a helper": within("return given(body.shape).radius"),
        "a result": within("return body.shape", returns=" -> Shape"),
        "lw.index_of": within("return lw.index_of(body.shape)", returns=" -> lw.i32"),
        "lw.same": within("return lw.f32(lw.same(body.shape, other.shape))", "body: Ball, other: Ball").replace(
            "@lw.elementwise", "@lw.pairwise"
        ),
    },
    "names": {
        "unknown name": element("return x + gravity"),
        "unknown field": element("return body.speed", BODY),
        "unknown field assigned": element("body.speed = 1.0", BODY, ""),
        "unknown component": element("return v.w", "v: lw.vec3"),
        "unknown swizzle": element("return v.xyzw", "v: lw.vec3", " -> lw.vec4"),
        "component of a scalar": element("return x.y"),
        "unknown name of a module": element("return lw.erfinv(x)"),
        "loop variable after its loop": element("for i in range(3):\n    pass\nreturn lw.f32(i)"),
        "possibly undefined": element("if x > 0:\n    y = x\nreturn y"),
        "undefined after a loop": element("for i in range(3):\n    y = x\nreturn y"),
        "a string of the module": element("return x * unit", before="unit = 'm'\n"),
        "a list of the module": element("return x * table[0]", before="table = [1.0, 2.0]\n"),
    },
    "signature": {
        "no annotation": element("return x", "x"),
        "annotation float": element("return x", "x: float"),
        "annotation int of the result": element("return 1", returns=" -> int"),
        "annotation of another kind": element("return 1.0", "x: np.ndarray"),
        "annotation of NumPy": element("return 1.0", "x: np.float64"),
        "annotation complex": element("return 1.0", "x: complex"),
        "annotation that fails": element("return 1.0", "x: 'lw.vec9'"),
        "a record as result": element("return body", BODY, " -> Body"),
        "result without annotation": element("return x", returns=""),
        "star": element("return 1.0", "*x: lw.f32"),
        "double star": element("return 1.0", "**x: lw.f32"),
        "keyword only": element("return x", "*, x: lw.f32"),
        "positional only": element("return x", "x: lw.f32, /"),
        "default value": element("return x", "x: lw.f32 = 1.0"),
        "method": element("return x", "self, x: lw.f32"),
        "lambda": HEAD + "kernel = lw.elementwise(lambda x: x)\n",
        "another decorator": element("return x", before="from functools import cache\n").replace(
            "@lw.elementwise\n", "@lw.elementwise\n@cache\n"
        ),
        "coroutine": element("return x").replace("def kernel", "async def kernel"),
        "builtin function": HEAD + "kernel = lw.elementwise(math.sqrt)\n",
        "pairwise without records": pair("return x", "x: lw.f32"),
        "pairwise with one record": pair("return target.mass", "target: Body, scale: lw.f32"),
        "pairwise with three records": pair("return target.mass", "target: Body, source: Body, third: Body"),
        "pairwise without result": pair("pass", returns=""),
        "pairwise that returns nothing": pair("pass", returns=" -> None"),
    },
    "statements": {
        "import": element("import math\nreturn x"),
        "from import": element("from math import sin\nreturn x"),
        "global": element("global count\nreturn x"),
        "nonlocal": HEAD
        + "def make():\n    count = 0\n    @lw.elementwise\n    def kernel(x: lw.f32) -> lw.f32:\n"
        + "        nonlocal count\n        return x\n    return kernel\n\nkernel = make()\n",
        "try": element("try:\n    return 1 / x\nexcept ZeroDivisionError:\n    return x"),
        "with": element("with open('file') as f:\n    return x"),
        "raise": element("if x < 0:\n    raise ValueError('negative')\nreturn x"),
        "assert": element("assert x > 0\nreturn x"),
        "del": element("y = x\ndel y\nreturn x"),
        "match": element("match x:\n    case 0:\n        return x\nreturn x"),
        "inner function": element("def f(a):\n    return a\nreturn f(x)"),
        "inner class": element("class A:\n    pass\nreturn x"),
        "for else": element("for i in range(3):\n    pass\nelse:\n    return x\nreturn x"),
        "while else": element("while x < 0:\n    pass\nelse:\n    return x\nreturn x"),
        "unused value": element("x + 1\nreturn x"),
        "unused call": element("lw.sin(x)\nreturn x"),
        "yield": element("yield x"),
        "missing return": element("if x > 0:\n    return x"),
        "missing return at all": element("y = x"),
        "differing number of results": element("if x > 0:\n    return x\nreturn x, x"),
        "differing types of results": element("return v", "v: lw.vec3"),
        "result that loses": element("return x", "x: lw.f64"),
        "return without a value": element("return"),
    },
    "loops": {
        "over a list": element("for m in [1, 2, 3]:\n    x += m\nreturn x"),
        "over a vector": element("for c in v:\n    pass\nreturn 1.0", "v: lw.vec3"),
        "over records": element("for b in bodies:\n    x += b.mass\nreturn x", before="bodies = Body.zeros(3)\n"),
        "over an array": element("for b in table:\n    x += b\nreturn x", before="table = np.ones(3)\n"),
        "over enumerate": element("for i, c in enumerate(range(3)):\n    pass\nreturn x"),
        "float range": element("for i in range(x):\n    pass\nreturn x"),
        "float literal range": element("for i in range(0.5):\n    pass\nreturn x"),
        "step zero": element("for i in range(0, 3, 0):\n    pass\nreturn x"),
        "step of a variable": element("for i in range(0, 3, n):\n    pass\nreturn 1.0", "n: lw.i32"),
        "range without bounds": element("for i in range():\n    pass\nreturn x"),
        "range outside of for": element("return range(3)"),
        "assigned loop variable": element("for i in range(3):\n    i = 2\nreturn x"),
        "one variable in two nested loops": element(
            "for i in range(3):\n    for i in range(3):\n        pass\nreturn x"
        ),
        "loop variable named like a parameter": element("for x in range(3):\n    pass\nreturn x"),
    },
    "assignments": {
        "record replaced": element("body = 1.0", BODY, ""),
        "pairwise target written": pair("target.mass = 1.0\nreturn 0.0"),
        "pairwise source written": pair("source.position += target.position\nreturn 0.0"),
        "second record written": element("other.mass = 1.0", "body: Body, other: Body", ""),
        "component written": element("body.position.x = 1.0", BODY, ""),
        "component of a variable": element("v.x = 1.0\nreturn v.y", "v: lw.vec3"),
        "narrower float": element("y = x\ny = z\nreturn y", "x: lw.f32, z: lw.f64"),
        "float into an integer": element("n = k\nn = x\nreturn x", "x: lw.f32, k: lw.i32"),
        "vector into a scalar": element("y = x\ny = v\nreturn y", "x: lw.f32, v: lw.vec3"),
        "float into a field of integers": element("body.rank = body.mass", BODY, ""),
        "vector of another length into a field": element("body.position = lw.vec2(1, 2)", BODY, ""),
        "integer divided in place": element("n /= 2\nreturn 1.0", "n: lw.i32"),
        "parameter narrowed": element("x = z\nreturn x", "x: lw.f32, z: lw.f64"),
        "record assigned": element("b = body\nreturn b.mass", BODY),
        "function assigned": element("f = lw.sin\nreturn f(x)"),
        "declared with a foreign type": element("y: float = x\nreturn y"),
        "declared without a value": element("y: lw.f32\nreturn x"),
        "declared twice": element("y: lw.f32 = 0\ny: lw.f64 = 0\nreturn x"),
        "parameter declared": element("x: lw.f64 = 0\nreturn x"),
        "declared too small": element("n: lw.u32 = -1\nreturn x"),
        "too few names": element("a, b = v\nreturn a", "v: lw.vec3"),
        "unpacked scalar": element("a, b = x\nreturn a"),
        "starred names": element("a, *b = v\nreturn a", "v: lw.vec3"),
        "chained unpacking": element("a, b = c, d = x, x\nreturn a"),
        "assignment inside an expression": element("return (y := x) + y"),
    },
    "expressions": {
        "comprehension": element("a = [x for i in range(3)]\nreturn x"),
        "generator": element("return sum(x * i for i in range(3))"),
        "sum with a condition": element("return sum(x * i for i in K if i)", before="K = (1, 2)\n"),
        "sum over an array": element("return sum(x * i for i in K)", before="K = 3\n"),
        "sum of nothing": element("return sum(x * i for i in K)", before="K = ()\n"),
        "lambda": element("f = lambda a: a\nreturn x"),
        "dictionary": element("d = {1: x}\nreturn x"),
        "list": element("a = [x, x]\nreturn x"),
        "tuple": element("return (x, x)[0]"),
        "string": element("name = 'x'\nreturn x"),
        "f-string": element("name = f'{x}'\nreturn x"),
        "complex": element("return x * 2j"),
        "None": element("y = None\nreturn x"),
        "float condition": element("if x:\n    return x\nreturn 0.0"),
        "whole condition": element("while n:\n    n -= 1\nreturn 0.0", "n: lw.i32"),
        "vector condition": element("if v > 0:\n    return 1.0\nreturn 0.0", "v: lw.vec3"),
        "vector equality": element("return lw.f32(a == b)", "a: lw.vec3, b: lw.vec3"),
        "condition of select": element("return lw.select(x, 1.0, 2.0)"),
        "not of a number": element("return 1.0 if not x else 2.0"),
        "and of numbers": element("return x and 1.0"),
        "in": element("return lw.f32(x in (1, 2))"),
        "is": element("return lw.f32(x is y)", "x: lw.f32, y: lw.f32"),
        "matrix product": element("return a @ b", "a: lw.vec3, b: lw.vec3"),
        "vectors of different lengths": element("return lw.length(a + b)", "a: lw.vec3, b: lw.vec2"),
        "choice of different lengths": element("return lw.length(a if a.x > 0 else b)", "a: lw.vec3, b: lw.vec2"),
        "bits of a float": element("return x & 1"),
        "shift of a float": element("return x << 2"),
        "inversion of a float": element("return ~x"),
        "booleans added": element("return (x > 0) + (x > 1)"),
        "minus a boolean": element("return -(x > 0)"),
        "shift too far": element("return n << 32", "n: lw.i32", " -> lw.i32"),
        "negative shift": element("return n >> -1", "n: lw.i32", " -> lw.i32"),
        "literal shifted by a negative one in a helper": element(
            "return x + helper(-2)", before=HELPER.format("n", "n >> n")
        ),
        "literal shifted too far": element("return x * (1 << 1024)"),
        "float literal shifted": element("return x * (1.5 << 1)"),
        "bits of a float literal": element("return x * (3 & 1.5)"),
        "division by zero in a helper": element("return x + helper(0)", before=HELPER.format("n", "5 // n")),
        "negative power": element("return n ** -2", "n: lw.i32", " -> lw.i32"),
        "power of an integer": element("return n ** n", "n: lw.i32", " -> lw.i32"),
        "vector as exponent": element("return x ** v", "x: lw.f32, v: lw.vec3"),
        "division by literal zero": element("return x / 0"),
        "remainder of literal zero": element("return n % 0", "n: lw.i32", " -> lw.i32"),
        "literals divided by zero": element("return x * (1 / 0)"),
        "negative for u32": element("return n + -1", "n: lw.u32", " -> lw.u32"),
        "too large for i32": element("return n + 3000000000", "n: lw.i32", " -> lw.i32"),
        "too large for f32": element("return x * 1e60"),
        "huge power": element("return x * 10 ** 100000"),
        "square root of a negative literal": element("return x * (-2.0) ** 0.5"),
        "record as a number": element("return body * 2", BODY),
        "module as a number": element("return math + x"),
    },
    "indices": {
        "table of the module": element("return table[0, 1]", before="table = np.ones((2, 2))\n"),
        "records of the module": element("return bodies[0].mass", before="bodies = Body.zeros(3)\n"),
        "two indices of a vector": element("return v[0, 1]", "v: lw.vec3"),
        "two indices of populations": site("f[0] = f[0, 1]"),
        "two indices of populations assigned": site("f[0, 1] = f[0]"),
        "component out of range": element("return v[3]", "v: lw.vec3"),
        "component chosen at run time": element("return v[n]", "v: lw.vec3, n: lw.i32"),
        "slice": element("return v[0:2]", "v: lw.vec3"),
        "array index out of range": element("a = lw.zeros(lw.f32, 4)\nreturn a[4]"),
        "array assigned out of range": element("a = lw.zeros(lw.f32, 4)\na[-5] = x\nreturn x"),
        "float index": element("a = lw.zeros(lw.f32, 4)\nreturn a[x]"),
        "index of a scalar": element("return x[0]"),
        "tuple index at run time": element("return w[n]", "n: lw.i32", before="w = (1.0, 2.0)\n"),
        "tuple index out of range": element("return x * w[2]", before="w = (1.0, 2.0)\n"),
        "array without a name": element("return lw.zeros(lw.f32, 4)[0]"),
        "array of vectors": element("a = lw.zeros(lw.vec3, 4)\nreturn x"),
        "array of a length known at run time": element("a = lw.zeros(lw.f32, n)\nreturn 1.0", "n: lw.i32"),
        "array too long": element("a = lw.zeros(lw.f32, 5000)\nreturn x"),
        "array without length": element("a = lw.zeros(lw.f32)\nreturn x"),
        "array replaced": element("a = lw.zeros(lw.f32, 4)\na = x\nreturn x"),
        "array of another length": element("a = lw.zeros(lw.f32, 4)\na = lw.zeros(lw.f32, 5)\nreturn x"),
        "array as a number": element("a = lw.zeros(lw.f32, 4)\nreturn a + x"),
        "array copied": element("a = lw.zeros(lw.f32, 4)\nb = a\nreturn x"),
        "array named like a parameter": element("x = lw.zeros(lw.f32, 4)\nreturn 1.0"),
        "float into an array of integers": element("a = lw.zeros(lw.i32, 4)\na[0] = x\nreturn x"),
    },
    "calls": {
        "NumPy's sum": element("return np.sum(v * v)", "v: lw.vec3"),
        "NumPy's random numbers": element("return x * np.random.rand()"),
        "a generator of NumPy": element("return x * rng.random()", before="rng = np.random.default_rng(1)\n"),
        "print": element("print(x)\nreturn x"),
        "len": element("return len(v)", "v: lw.vec3"),
        "int": element("return int(x)"),
        "float": element("return float(x)"),
        "sum": element("return sum(v)", "v: lw.vec3"),
        "round": element("return round(x)"),
        "reduction": element("return lw.sum(x)"),
        "min of one": element("return lw.min(x)"),
        "too many arguments": element("return lw.sin(x, x)"),
        "too few arguments": element("return lw.clamp(x, 0.0)"),
        "keyword argument": element("return lw.clamp(x, low=0.0, high=1.0)"),
        "starred argument": element("return lw.hypot(*v)", "v: lw.vec2"),
        "function of math without a counterpart": element("return math.lgamma(x)"),
        "function of NumPy": element("return np.linalg.norm(v)", "v: lw.vec3"),
        "function of NumPy on a vector": element("return lw.length(np.sqrt(v))", "v: lw.vec3"),
        "number called": element("return x(1)"),
        "number of booleans": element("return lw.f32(lw.sqrt(x > 0) + lw.abs(x > 0))"),
        "too few components": element("return lw.length(lw.vec3(x, x))"),
        "scalar of a vector": element("return lw.f32(v)", "v: lw.vec3"),
        "dot of scalars": element("return lw.dot(x, x)"),
        "cross of vec2": element("return lw.length(lw.cross(v, v))", "v: lw.vec2"),
        "length of a scalar": element("return lw.length(x)"),
        "undecorated helper": element("return double(x)", before="def double(a):\n    return 2 * a\n\n"),
        "recursion": element(
            "return down(x)", before="@lw.function\ndef down(a):\n    return down(a - 1) if a > 0 else a\n\n"
        ),
        "mutual recursion": element(
            "return ping(x)",
            before="@lw.function\ndef ping(a):\n    return pong(a)\n\n@lw.function\ndef pong(a):\n    return ping(a)\n\n",
        ),
        "wrong number of arguments": element(
            "return double(x, x)", before="@lw.function\ndef double(a):\n    return 2 * a\n\n"
        ),
        "helper that returns nothing": element(
            "y = nothing(x)\nreturn x", before="@lw.function\ndef nothing(a):\n    b = a\n\n"
        ),
        "helper with another type": element(
            "return half(x)",
            "x: lw.f64",
            " -> lw.f64",
            before="@lw.function\ndef half(a: lw.f32):\n    return a / 2\n\n",
        ),
        "helper without a record": element(
            "return heavy(x)", before="@lw.function\ndef heavy(body: Body):\n    return body.mass\n\n"
        ),
        "inside a helper": element(
            "return outer(x)",
            before="@lw.function\ndef inner(b):\n    return b.z\n\n@lw.function\ndef outer(a):\n    return inner(a) + 1\n\n",
        ),
        "helper that writes": element(
            "return reset(body)", BODY, before="@lw.function\ndef reset(b: Body):\n    b.mass = 0.0\n    return 1.0\n\n"
        ),
        "several results as one": element(
            "y = both(x)\nreturn x", before="@lw.function\ndef both(a):\n    return a, a\n\n"
        ),
        "same in an elementwise kernel": element("return lw.f32(lw.same(body, body))", BODY),
        "same of one record twice": pair("return lw.f32(lw.same(target, target))"),
        "same of fields": pair("return lw.f32(lw.same(target.mass, source.mass))"),
        "same in a helper": pair("return weight(target, source)").replace(
            "@lw.pairwise",
            "@lw.function\ndef weight(a: Body, b: Body):\n    return 0.0 if lw.same(a, b) else 1.0\n\n@lw.pairwise",
        ),
        "callable object": element("return Thing()(x)", before="class Thing:\n    pass\n\n"),
    },
    "directions": {
        "populations of an elementwise kernel": element("return f[0]", "f: lw.populations"),
        "populations of a pairwise kernel": pair("return f[0]", "target: Body, source: Body, f: lw.dpopulations"),
        "no populations": site("x = 1", "x: lw.f32"),
        "no parameters": site("pass", ""),
        "populations later": site("f[0] = x", "x: lw.f32, f: lw.populations"),
        "populations twice": site("f[0] = g[1]", "f: lw.populations, g: lw.populations"),
        "populations as result": site("return f", returns=" -> lw.populations"),
        "populations as a value": site("return x + f", returns=" -> lw.f32"),
        "populations replaced": site("f = x"),
        "field of populations": site("return f.q0", returns=" -> lw.f32"),
        "index known at run time": site("f[n] = 0", "f: lw.populations, n: lw.i32"),
        "loop variable as index": site("for i in range(9):\n    f[i] = 0"),
        "float as index": site("f[0.5] = 0"),
        "boolean as index": site("f[True] = 0"),
        "index outside": site("f[9] = 0"),
        "index before the first": site("x = f[-10]"),
        "direction of another lattice": site("for q in lw.D3Q19:\n    f[q] = 0"),
        "slice of populations": site("x = f[1:3]"),
        "loop over populations": site("for g in f:\n    x += g"),
        "wide value": site("f[0] = y", "f: lw.populations, y: lw.f64"),
        "vector as population": site("f[0] = lw.vec2(x)"),
        "populations changed by a helper": site(
            "x = helper(f)", before="@lw.function\ndef helper(f):\n    f[0] = 1\n    return f[0]\n\n"
        ),
        "populations for a scalar": site("x = helper(f)", before=HELPER.format("a: lw.f32", "a")),
        "scalar for populations": site("x = helper(x)", before=HELPER.format("a: lw.populations", "a[0]")),
        "populations of another precision": site(
            "x = helper(f)", before=HELPER.format("a: lw.dpopulations", "lw.f32(a[0])")
        ),
        "break": site(LOOP + "if f[q] > x:\n        break"),
        "continue": site(LOOP + "if q.x == 1:\n        continue\n    f[q] = 0"),
        "break out of both": site("for i in range(3):\n    for q in lw.D2Q9:\n        if f[q] > x:\n            break"),
        "else behind the loop": site(LOOP + "f[q] = 0\nelse:\n    x = 1"),
        "direction after its loop": site(LOOP + "f[q] = 0\nf[q] = 1"),
        "direction assigned": site(LOOP + "q = 3"),
        "name of a parameter": site("for x in lw.D2Q9:\n    f[x] = 0"),
        "name in a loop within": site(LOOP + "for q in lw.D2Q9:\n        f[q] = 0"),
        "name of a counter elsewhere": site(LOOP + "f[q] = 0\nfor q in range(3):\n    x += 1"),
        "name of a counter before": site("for q in range(3):\n    x += 1\nfor q in lw.D2Q9:\n    f[q] = 0"),
        "two names": site("for q, r in lw.D2Q9:\n    f[q] = 0"),
        "tuple of strings": site("for q in names:\n    f[q] = 0", before="names = ('east', 'west')\n"),
        "tuple of pairs": site("for q in pairs:\n    f[q] = 0", before="pairs = ((1, 2), (3, 4))\n"),
        "direction as a number": site(LOOP + "x += q"),
        "direction as a vector": site(LOOP + "x += lw.dot(q, q.velocity)"),
        "direction returned": site(LOOP + "return q", returns=" -> lw.f32"),
        "directions compared": site(LOOP + "if q == q.opposite:\n        f[q] = 0"),
        "unknown attribute": site(LOOP + "f[q] = q.w"),
        "attribute assigned": site(LOOP + "q.x = 1"),
        "direction into a population": site(LOOP + "f[q] = q.opposite"),
        "direction under the name of a number": site(LOOP + "r = q.opposite\n    r = 1"),
        "direction under the name of a parameter": site(LOOP + "x = q.opposite"),
        "direction for a type": site(LOOP + "x += helper(q)", before=HELPER.format("a: lw.f32", "a")),
        "direction of a helper assigned": site(
            LOOP + "x += helper(q)", before="@lw.function\ndef helper(q):\n    q = 1\n    return 2.0\n\n"
        ),
        "lattice for a helper": site("x += helper(lw.D2Q9)", before=HELPER.format("a", "a.size")),
        "along a vector of three": site(LOOP + "x += q.along(lw.vec3(x))"),
        "along a scalar": site(LOOP + "x += q.along(x)"),
        "along nothing": site(LOOP + "x += q.along()"),
        "velocity and a vector of three": site(LOOP + "x += lw.length(q.velocity + lw.vec3(x))"),
        "element of a lattice that is not there": site("f[lw.D2Q9[9]] = 0"),
        "inside a helper of a direction": site(
            LOOP + "x += helper(q, f)", before=HELPER.format("q, f", "f[q] + q.speed")
        ),
    },
    "places": {
        "over several lines": element("return (\n    x\n    + lw.sin(\n        y\n    )\n)"),
        "operation over several lines": element("return (x\n        & 1)"),
        "behind letters of several bytes": element("return 2 * größe + längé", "größe: lw.f32"),
        "behind wide letters": element("return 力 + 質量", "力: lw.f32"),
        "behind a tab": HEAD + "@lw.elementwise\ndef kernel(x: lw.f32) -> lw.f32:\n\treturn\tx + y\n",
        "in an indented function": HEAD
        + "if True:\n    @lw.elementwise\n    def kernel(x: lw.f32) -> lw.f32:\n        return x + y\n",
        "in a closure": HEAD
        + "def make(scale):\n    @lw.elementwise\n    def kernel(x: lw.f32) -> lw.f32:\n"
        + "        # a comment\n        return x * scale\n    return kernel\n\nkernel = make('two')\n",
        "below a comment further left": HEAD
        + "def make():\n    @lw.elementwise\n    def kernel(x: lw.f32) -> lw.f32:\n# left\n"
        + "        return x + y\n    return kernel\n\nkernel = make()\n",
        "in a condition": element("while lw.sin(x):\n    x += 1\nreturn x"),
        "source gone": HEAD
        + "exec('def kernel(x: lw.f32) -> lw.f32:\\n    return x')\nkernel = lw.elementwise(kernel)\n",
    },
    "tables": {
        "an element that is written": element("t[0] = x\nreturn x", "x: lw.f32, t: lw.Array1[lw.f32]"),
        "an element that is changed": element("t[0] += x\nreturn x", "x: lw.f32, t: lw.Array1[lw.f32]"),
        "a scatter of pairs": pair(
            "lw.scatter_add(t, 0, 1)\nreturn 0.0", "target: Body, source: Body, t: lw.Array1[lw.i32]"
        ),
        "a table that is replaced": element("t = x\nreturn x", "x: lw.f32, t: lw.Array1[lw.f32]"),
        "too few indices": element("return t[0]", "x: lw.f32, t: lw.Array2[lw.f32]"),
        "a float for an index": element("return t[x]", "x: lw.f32, t: lw.Array1[lw.f32]"),
        "a negative index": element("return t[-1]", "x: lw.f32, t: lw.Array1[lw.f32]"),
        "a table of a helper": element(
            "return first(t)",
            "x: lw.f32, t: lw.Array1[lw.f32]",
            before="@lw.function\ndef first(a):\n    return a[0]\n\n",
        ),
        "vectors": element("return x", "x: lw.f32, t: lw.Array1[lw.vec3]"),
        "a table by itself": element("return t", "x: lw.f32, t: lw.Array1[lw.f32]"),
        "a keyword of calls": element("return t[checks]", "checks: lw.i32, t: lw.Array1[lw.f32]"),
        "an index of a number": element("return lw.f32(lw.index_of(x + 1))"),
        "an index of a local": element("y = x\nreturn lw.f32(lw.index_of(y))"),
        "an index without an element": element("return lw.f32(lw.index_of())"),
        "an index in a helper": element(
            "return f(x)", before="@lw.function\ndef f(x):\n    return lw.f32(lw.index_of(x))\n\n"
        ),
        "an index in a threadwise function": thread("c[y, x] = lw.f32(lw.index_of(c))"),
        "integers between": element("return lw.interpolate(t, x)", "x: lw.f32, t: lw.Array1[lw.i32]"),
        "a coordinate too few": element("return lw.interpolate(t, x)", "x: lw.f32, t: lw.Array2[lw.f32]"),
        "a whole coordinate": element("return lw.interpolate(t, n)", "n: lw.i32, t: lw.Array1[lw.f32]"),
        "an unknown edge": element('return lw.interpolate(t, x, edge="wrap")', "x: lw.f32, t: lw.Array1[lw.f32]"),
        "another keyword": element("return lw.interpolate(t, x, order=3)", "x: lw.f32, t: lw.Array1[lw.f32]"),
        "no table": element("return lw.interpolate(x, x)"),
        "an array from outside": element("return TABLE[1]", before="TABLE = np.ones(3)\n\n"),
    },
    "threadwise": {
        "too few indices": thread("c[y] = 1.0"),
        "too many indices": thread("c[y, x, 0] = 1.0"),
        "an index in brackets of its own": thread("c[y, x] = c[y][x]"),
        "a float as an index": thread("c[y, 0.5 * x] = 1.0"),
        "a condition as an index": thread("c[y, x > 3] = 1.0"),
        "a vector as an index": thread("c[y, v] = 1.0", "v: lw.ivec2"),
        "an array as an index": thread("c[y, c] = 1.0"),
        "a negative index": thread("c[y, -1] = 1.0"),
        "a slice": thread("c[y, x] = c[y, 0:2]"),
        "assignment to an index": thread("y = 0\nc[y, x] = 1.0"),
        "assignment to an index in place": thread("x += 1\nc[y, x] = 1.0"),
        "assignment to an array": thread("c[y, x] = 1.0\nc = 2.0"),
        "an index as a loop variable": thread("for x in range(3):\n    c[y, x] = 1.0"),
        "an array as a number": thread("c[y, x] = c + 1.0"),
        "an array by another name": thread("b = c\nc[y, x] = 1.0"),
        "a shape as a number": thread("c[y, x] = c.shape"),
        "an unknown attribute": thread("c[y, x] = lw.f32(c.size)"),
        "a method": thread("c[y, x] = c.sum()"),
        "a dimension that is not there": thread("c[y, x] = lw.f32(c.shape[2])"),
        "a dimension of run time": thread("c[y, x] = lw.f32(c.shape[x])"),
        "another type of element": thread("c[y, x] = v", "v: lw.f64"),
        "a vector as an element": thread("c[y, x] = v", "v: lw.vec3"),
        "an array for a helper": thread(
            "c[y, x] = first(c)", before="@lw.function\ndef first(a):\n    return a[0, 0]\n\n"
        ),
        "an index of a helper": thread(
            "c[y, x] = next_(x)", before="@lw.function\ndef next_(i: lw.index):\n    return i\n\n"
        ),
        "a result": thread("c[y, x] = 1.0", returns=" -> lw.f32"),
        "a returned value": thread("c[y, x] = 1.0\nreturn c[y, x]"),
        "a returned value, nothing written": thread("return c[y, x]"),
        "nothing written": thread("v = c[y, x]"),
        "no index": thread("c[0, 0] = 1.0", first="n: lw.i32"),
        "an index behind an array": thread("c[y, x] = 1.0", "x: lw.index", first="y: lw.index"),
        "four indices": thread("c[y, x] = 1.0", first="a: lw.index, z: lw.index, y: lw.index, x: lw.index"),
        "a record": thread("c[y, x] = b.mass", "b: Body"),
        "a row": thread("c[y, x] = b[0]", "b: lw.Row[lw.f32]"),
        "an array of vectors": thread("c[y, x] = 1.0", "b: lw.Array1[lw.vec3]"),
        "an array of nothing": thread("c[y, x] = 1.0", "b: lw.Array1"),
        "a parameter called grid": thread("c[y, x] = grid", "grid: lw.f32"),
        "an index elsewhere": element("return x", "x: lw.f32, i: lw.index"),
        "an array of a helper": thread(
            "c[y, x] = first(1.0)", before="@lw.function\ndef first(a: lw.Array1[lw.f32]):\n    return a[0]\n\n"
        ),
        "an array declared": thread("b: lw.Array1[lw.f32] = c\nc[y, x] = 1.0"),
        "lw.same": thread("c[y, x] = 1.0 if lw.same(y, x) else 2.0"),
    },
}
