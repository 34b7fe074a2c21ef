"""unpack.py tar|bundle DIR: puts the source code that comes on standard input into DIR."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from _acp import unpacking  # noqa: E402

unpacking.main(sys.argv[1:])
