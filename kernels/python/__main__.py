"""python3 kernels/python [--zygote [--imports NAMES] | --once FILE [--results FILE]]"""

import os
import sys

USAGE = "usage: python3 kernels/python [--zygote [--imports NAMES] | --once FILE [--results FILE]]"


def main(arguments):
    sys.path[0] = os.path.dirname(os.path.abspath(__file__))
    shape = [word for word in arguments[::2]]
    if shape == [] or shape == ["--zygote"] and len(arguments) == 1:
        from _sandglass.kernel import main as serve
    elif arguments[0] == "--zygote" and len(arguments) == 3 and arguments[1] == "--imports":
        from _sandglass.kernel import main as serve
    elif shape in (["--once"], ["--once", "--results"]) and len(arguments) == 2 * len(shape):
        from _sandglass.once import main as serve
    else:
        sys.exit(USAGE)
    serve(arguments)


main(sys.argv[1:])
