"""What was decided about a kernel, why, what a model predicts of it, and what was measured."""

from lanewise.explanation.report import Analysis, Bottleneck, Change, Explanation, Row

__all__ = ["Analysis", "Bottleneck", "Change", "Explanation", "Row"]
