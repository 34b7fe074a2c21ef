"""From a cell's text to one code object, and whether it leaves a value.

A value is the last expression's. Of a cell that is nothing but one line of expression, the parser
answers that directly; else the last statement is turned into an assignment to a name that the
cell cannot see, so the code stays one piece: one frame in tracebacks, one coroutine if it awaits.

What is no Python is looked at again, with the magics in mind: code without any pays nothing.
"""

import ast
import linecache

TOP_LEVEL_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
FUTURES = 0x1FE0000  # the flags of __future__, which last from one cell to the next
VALUE = "_sandglass_value"


def name_of(number):
    """The file name of a cell, as tracebacks show it."""
    return f"Cell In[{number}]"


def remember(filename, source):
    """Lets tracebacks, inspect and pdb show the cell's lines. They are cut when first needed."""
    try:
        linecache.cache[filename] = (lambda: source,)
    except TypeError:  # a cell has put something else there
        linecache.cache = {}


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
            ast.copy_location(node, last)
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
