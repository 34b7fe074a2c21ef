"""From a cell's text to one code object, and whether it leaves a value.

A value is the last expression's. Of a cell that is nothing but one line of expression, the parser
answers that directly; else the last statement is turned into an assignment to a name that the
cell cannot see, so the code stays one piece: one frame in tracebacks, one coroutine if it awaits.

What is no Python is looked at again, with the magics in mind: code without any pays nothing.
"""

import _ast as ast  # what the interpreter has by itself: `--once` must not wait for modules
import sys
from importlib.machinery import PathFinder

TOP_LEVEL_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
FUTURES = 0x1FE0000  # the flags of __future__, which last from one cell to the next
VALUE = "_sandglass_value"
CALL = "_sandglass_magic"  # what syntax.py makes of magics


def name_of(number):
    """The file name of a cell, as tracebacks show it."""
    return f"Cell In[{number}]"


def remember(filename, source):
    """Lets tracebacks, inspect and pdb show the cell's lines. They are cut when first needed."""
    linecache = sys.modules.get("linecache")
    if linecache is None:
        _Late.of(filename, source)
        return
    try:
        linecache.cache[filename] = (lambda: source,)
    except TypeError:  # a cell has put something else there
        linecache.cache = {}


class _Late:
    """A finder that waits for somebody to load linecache, and tells it about the cells so far. To
    load it takes longer than most cells."""

    cells = {}

    @classmethod
    def of(cls, filename, source):
        cls.cells[filename] = source
        if cls not in sys.meta_path:
            sys.meta_path.insert(0, cls)

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "linecache":
            return None
        sys.meta_path.remove(cls)
        spec = PathFinder.find_spec(name)
        if spec is not None:
            spec.loader.exec_module = cls.exec_module(spec.loader.exec_module)
        return spec

    @classmethod
    def exec_module(cls, original):
        def exec_module(module):
            original(module)
            for filename, source in cls.cells.items():
                module.cache[filename] = (lambda source=source: source,)

        return exec_module


def compile_cell(source, filename, flags=0):
    """The code object. If it is an expression's, eval() gives the value; else VALUE is set."""
    flags |= TOP_LEVEL_AWAIT
    if "\n" not in source and ";" not in source:
        try:
            return compile(source, filename, "eval", flags, True)
        except SyntaxError:
            pass
    if "\r" in source:
        source = source.replace("\r\n", "\n").replace("\r", "\n")
    indented = source.lstrip("\n")[:1] in (" ", "\t")
    while True:
        try:
            return _compile_statements(source, filename, flags)
        except SyntaxError as error:
            source = _as_notebook(source, error, indented)
            if source is None:
                raise
        indented = False


def _compile_statements(source, filename, flags):
    tree = compile(source, filename, "exec", flags | ast.PyCF_ONLY_AST, True)
    last = tree.body[-1] if tree.body else None
    if type(last) is not ast.Expr:
        return compile(tree, filename, "exec", flags, True)
    if not _is_quiet(source, last):
        name = ast.Name(VALUE, ast.Store())
        tree.body[-1] = ast.Assign([name], last.value, None)
        for node in (tree.body[-1], name):
            node.lineno, node.end_lineno = last.lineno, last.end_lineno
            node.col_offset, node.end_col_offset = last.col_offset, last.end_col_offset
    return compile(tree, filename, "exec", flags, True)


def _is_quiet(source, last):
    """Whether a semicolon follows the last expression. Columns are counted in bytes of UTF-8."""
    line = source.split("\n")[last.end_lineno - 1].encode("utf-8", "replace")
    return line[last.end_col_offset:].lstrip().startswith(b";")


def _as_notebook(source, error, indented):
    """The source without its common indentation, or with one more magic replaced by a call."""
    if not indented and not any(mark in source for mark in ("%", "!", "?", "pip ")):
        return None
    from . import syntax

    changed = syntax.dedent(source) if indented else syntax.replace(source, error)
    return changed if changed != source else None
