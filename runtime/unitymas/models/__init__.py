"""Model groups: each serves and trains one model; the only package that imports torch or Ray.

Importing it imports neither: what a model needs is imported when its group is built.
"""

from unitymas.models.build import Backend, build_groups

__all__ = ["Backend", "build_groups"]
