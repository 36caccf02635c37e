"""Expressions (CEL) and templates (Jinja2): what a node may see, and the only doors to both engines."""

from unitymas.expr.cel import Environment, Program, names
from unitymas.expr.errors import EvaluationError, ExpressionError
from unitymas.expr.scope import Scope
from unitymas.expr.template import Template

__all__ = ["Environment", "EvaluationError", "ExpressionError", "Program", "Scope", "Template", "names"]
