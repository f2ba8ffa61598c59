"""What users find on objects of rooms below those that it belongs to: `call.explain()`,
`Body.array(...)`, `kernel.tune()`.

A room uses those below it and no others. A method of the room where an object lives may be work of
a room above; then it imports that from here, when it runs, and a type checker reads the types.
These are all such names, each with its reason: nothing else leads up, and no two files import each
other but through this one (`tests/test_storeys.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from lanewise.support.interrupts import imported

if TYPE_CHECKING:
    from lanewise.advice.auto import settle_layouts as settle_layouts
    from lanewise.advice.choose import layout_advice as layout_advice
    from lanewise.explanation import Explanation as Explanation
    from lanewise.explanation.build import explain_compiled as explain_compiled
    from lanewise.explanation.loops import launches_of as launches_of
    from lanewise.explanation.mesh_loops import mesh_of_loop as mesh_of_loop
    from lanewise.explanation.rendering import as_html as as_html
    from lanewise.explanation.rendering import as_rich as as_rich
    from lanewise.explanation.rendering import as_text as as_text
    from lanewise.explanation.sites import explain_step as explain_step
    from lanewise.layouts import Layout as Layout
    from lanewise.loops.explanation import LoopExplanation as LoopExplanation
    from lanewise.loops.explanation import explain_steps as explain_steps
    from lanewise.patterns.elementwise.gradient import ElementwiseGradient as ElementwiseGradient
    from lanewise.patterns.elementwise.gradient import elementwise_gradient as elementwise_gradient
    from lanewise.patterns.pairwise.gradient import PairwiseGradient as PairwiseGradient
    from lanewise.patterns.pairwise.gradient import pairwise_gradient as pairwise_gradient
    from lanewise.patterns.search.tuning.tune import replay_search as replay_search
    from lanewise.records.arrays import RecordArray as RecordArray
    from lanewise.records.interchange import array_of as array_of
    from lanewise.records.open_layout import LayoutArgument as LayoutArgument
    from lanewise.records.pickled import restored_array as restored_array
    from lanewise.records.pickled import restored_row as restored_row
    from lanewise.records.structures import structure_of as structure_of
    from lanewise.runtime.mesh import Mesh as Mesh
    from lanewise.tuning import tune_job as tune_job
    from lanewise.tuning.job import Contents as Contents
    from lanewise.tuning.job import Job as Job
    from lanewise.tuning.job import check_tunable as check_tunable
    from lanewise.tuning.report import Tuning as Tuning


class Above(NamedTuple):
    """Where a name lives, and why a room below has it."""

    module: str
    why: str


NAMES = {
    "layout_advice": Above("advice.choose", "kernel.tune() names a faster layout"),
    "settle_layouts": Above("advice.auto", "calls on arrays that were made with layout='auto'"),
    "Explanation": Above("explanation", "what .explain() returns"),
    "explain_compiled": Above("explanation.build", "call.explain()"),
    "launches_of": Above("explanation.loops", "loop.explain() has the launches of a step"),
    "LoopExplanation": Above("loops.explanation", "stepper.explain()"),
    "explain_steps": Above("loops.explanation", "stepper.explain()"),
    "mesh_of_loop": Above("explanation.mesh_loops", "loop.explain() says what a mesh copies"),
    "as_html": Above("explanation.rendering", "str(explanation), and what notebooks show"),
    "as_rich": Above("explanation.rendering", "str(explanation), and what notebooks show"),
    "as_text": Above("explanation.rendering", "str(explanation), and what notebooks show"),
    "explain_step": Above("explanation.sites", "stepper.explain()"),
    "Layout": Above("layouts", "Body.array(..., layout=...)"),
    "ElementwiseGradient": Above("patterns.elementwise.gradient", "kernel.gradient(...)"),
    "elementwise_gradient": Above("patterns.elementwise.gradient", "kernel.gradient(...)"),
    "PairwiseGradient": Above("patterns.pairwise.gradient", "kernel.gradient(...)"),
    "pairwise_gradient": Above("patterns.pairwise.gradient", "kernel.gradient(...)"),
    "replay_search": Above(
        "patterns.search.tuning.tune", "lanewise.tuning.replay repeats every recorded search"
    ),
    "LayoutArgument": Above("records.open_layout", "Body.array(..., layout='auto')"),
    "RecordArray": Above("records.arrays", "Body.array(...), Body.zeros(...)"),
    "array_of": Above("records.interchange", "Body.array(...)"),
    "restored_array": Above("records.pickled", "pickle.dumps(array)"),
    "restored_row": Above("records.pickled", "pickle.dumps(row)"),
    "structure_of": Above("records.structures", "Body.dtype"),
    "Mesh": Above("runtime.mesh", "Body.array(..., device=mesh)"),
    "tune_job": Above("tuning", "kernel.tune()"),
    "Job": Above("tuning.job", "what .tuning_job() returns"),
    "check_tunable": Above("tuning.job", "kernel.tune() refuses what it cannot measure"),
    "Contents": Above("tuning.job", "what .tuning_job() is made of"),
    "Tuning": Above("tuning.report", "what .tune() returns"),
}


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module 'lanewise.facade' has no attribute {name!r}")
    return getattr(imported(f"lanewise.{NAMES[name].module}"), name)
