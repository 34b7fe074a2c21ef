"""python3 .../kernels/bridge LANGUAGE"""
import os
import sys

KERNELS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: python3 bridge LANGUAGE, with the control socket as descriptor 3")
    # Our own folder came first, where `import bash` would find bridge/bash.py.
    sys.path[0:1] = [KERNELS, os.path.join(KERNELS, "python")]
    from _sandglass.protocol import Control
    from bridge import serve
    serve(Control(), sys.argv[1])


main()
