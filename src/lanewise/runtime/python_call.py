"""The function of Python's C interface around a kernel in LLVM's language: it takes the kernel's
numbers and arrays out of the objects that it is given. A call by ctypes takes twice as long.
"""

from __future__ import annotations

from lanewise.runtime.llvm_lines import FunctionLines

# of an array of NumPy, in its memory: where its elements are, how many dimensions it has, the
# lengths and the steps of these, and its flags (`PyArrayObject_fields` of NumPy's C interface)
HEAD = object.__basicsize__
DATA, DIMENSIONS, LENGTHS, STEPS, FLAGS = (HEAD + n for n in (0, 8, 16, 24, 48))
CONTIGUOUS, WRITEABLE = 0x1, 0x400
DECLARED = """\
@lw_nothing = internal constant i64 0
@_Py_NoneStruct = external global i8
@PyExc_TypeError = external global ptr
@PyExc_AssertionError = external global ptr
@PyExc_MemoryError = external global ptr
declare void @PyErr_SetString(ptr, ptr)
declare ptr @PyErr_Occurred()
declare i32 @PyObject_IsTrue(ptr)
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
"""  # of Python's C interface


class PythonCall:
    """The lines of such a function, from what it is given to what it returns: None."""

    def __init__(self, name: str, wanted: int) -> None:
        """`wanted`: arguments."""
        self.code, self._name, self._constants = FunctionLines(), name, list[str]()
        right = self.code.give(f"icmp eq i64 %count, {wanted}")
        self.require(right, "PyExc_TypeError", f"{name} takes {wanted} arguments")

    def given(self, n: int) -> str:
        """An argument, as an object."""
        return self.read("ptr", "%arguments", 8 * n)

    def read(self, kind: str, base: str, offset: int) -> str:
        """What lies so many bytes behind an address."""
        place = self.code.give(f"getelementptr inbounds i8, ptr {base}, i64 {offset}")
        return self.code.give(f"load {kind}, ptr {place}")

    def require(self, condition: str, error: str, text: str) -> None:
        """Where something is not so, that is what Python raises."""
        code, constant = self.code, f"@lw_text_{len(self._constants)}"
        self._constants.append(f"{constant} = internal constant {_bytes_of(text)}\n")
        fine, wrong = code.label("fine"), code.label("wrong")
        code.branch(condition, fine, wrong)
        code.begin(wrong)
        kind = code.give(f"load ptr, ptr @{error}")
        code.do(f"call void @PyErr_SetString(ptr {kind}, ptr {constant})")
        code.end("ret ptr null")
        code.begin(fine)

    def number(self, n: int, kind: str) -> str:
        """An argument, a number of Python or NumPy, as one of a type of LLVM."""
        code, given = self.code, self.given(n)
        match kind:
            case "i1":
                truth = code.give(f"call i32 @PyObject_IsTrue(ptr {given})")
                return code.give(f"icmp sgt i32 {truth}, 0")
            case "half":  # of a float16 or float32: no other step rounds
                value = code.give(f"call double @PyFloat_AsDouble(ptr {given})")
                value = code.give(f"fptrunc double {value} to float")
                narrow = f"fptrunc float {value} to half"
            case "float" | "double":
                value = code.give(f"call double @PyFloat_AsDouble(ptr {given})")
                narrow = f"fptrunc double {value} to {kind}"
            case _:
                value = code.give(f"call i64 @PyLong_AsLongLong(ptr {given})")
                narrow = f"trunc i64 {value} to {kind}"
        return value if kind in ("double", "i64") else code.give(narrow)

    def without_error(self) -> None:
        """Behind all numbers: one that was none is an exception already."""
        code, error = self.code, self.code.give("call ptr @PyErr_Occurred()")
        bad, good = code.label("no_number"), code.label("numbers")
        code.branch(code.give(f"icmp eq ptr {error}, null"), good, bad)
        code.begin(bad)
        code.end("ret ptr null")
        code.begin(good)

    def run(self, called: str) -> None:
        """The kernel itself, while other threads of Python run. It gives 0, or 1 where there is no
        memory for it.
        """
        code = self.code
        thread = code.give("call ptr @PyEval_SaveThread()")
        status = code.give(f"call i32 {called}")
        code.do(f"call void @PyEval_RestoreThread(ptr {thread})")
        text = f"{self._name} found no memory for its local arrays"
        self.require(code.give(f"icmp eq i32 {status}, 0"), "PyExc_MemoryError", text)

    def text(self, symbol: str, result: str = "") -> str:
        """The function, with what it needs; it returns None, or the object `result`."""
        if not result:
            self.code.do("call void @Py_IncRef(ptr @_Py_NoneStruct)")
        self.code.end(f"ret ptr {result or '@_Py_NoneStruct'}")
        head = f"define ptr {symbol}(ptr %self, ptr %arguments, i64 %count)"
        constants = "".join(self._constants)
        return f"{DECLARED}{constants}\n{head} {{\n{self.code.text()}\n}}\n"


def _bytes_of(text: str) -> str:
    """A text as a constant that ends with a zero."""
    data = [*text.encode(), 0]
    plain = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data)
    return f'[{len(data)} x i8] c"{plain}"'
