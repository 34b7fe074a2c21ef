"""python3 kernels/python [--zygote|--plain [--imports NAMES] | --once FILE [--results FILE]]"""

import os
import sys

USAGE = (
    "usage: python3 kernels/python [--zygote|--plain [--imports NAMES] | --once FILE [--results FILE]]"
)
ZYGOTES = ("--zygote", "--plain")


def main(arguments):
    sys.path[0] = os.path.dirname(os.path.abspath(__file__))
    shape = arguments[::2]
    zygote = len(arguments) in (1, 3) and arguments[0] in ZYGOTES
    if not arguments or zygote and arguments[1:2] in ([], ["--imports"]):
        from _sandglass.kernel import main as serve
    elif shape in (["--once"], ["--once", "--results"]) and len(arguments) == 2 * len(shape):
        from _sandglass.once import main as serve
    else:
        sys.exit(USAGE)
    serve(arguments)


main(sys.argv[1:])
