"""Kernels for languages that have an interpreter of their own: bash, R, Java, any Jupyter kernel.

The interpreter is a child process with state of its own. This program stands between it and the
agent: it speaks the protocol of ../README.md on one side, and on the other what the interpreter
understands. The interpreter inherits descriptors 1 and 2, so its output is copied by nobody.
"""
from .loop import serve

__all__ = ["serve"]
