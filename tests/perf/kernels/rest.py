"""How long threads of numeric libraries take to rest, and what the next use costs. argv: rounds.
Drives the kernel's program by its control socket, as the agent does. Prints JSON lines."""
import glob
import json
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "kernels/python/tests"))
from harness import Kernel  # noqa: E402

LIBRARIES = os.path.dirname(os.path.dirname(glob.glob("/usr/lib/*/blas/libblas.so.3")[0]))
NUMPY = "import numpy as np\nm = np.ones((200, 200))"
CASES = {
    "no threads": ("blas", NUMPY, "m @ m;"),
    "OpenBLAS, pthread": ("openblas-pthread", NUMPY, "m @ m;"),
    "OpenBLAS, OpenMP": ("openblas-openmp", NUMPY, "m @ m;"),
    "numexpr": ("blas", NUMPY + "\nimport numexpr", "numexpr.evaluate('m * 2');"),
}


def report(case, begin):
    print(json.dumps({"case": case, "us": round((time.perf_counter() - begin) * 1e6, 1)}))


def run(kernel, code):
    begin = time.perf_counter()
    cell = kernel.run(code)
    if cell.error:
        raise RuntimeError(cell.error)
    return begin


def measure(name, blas, begin, use, rounds):
    kernel = Kernel(environment={"PATH": "/usr/bin:/bin", "HOME": "/tmp", "OMP_NUM_THREADS": "2",
                                 "LD_LIBRARY_PATH": f"{LIBRARIES}/{blas}"})
    run(kernel, begin)
    for _ in range(rounds):
        run(kernel, use)
        report(f"{name}: use", run(kernel, use))
        time.sleep(0.05)  # workers spin for a while before they sleep
        asked = time.perf_counter()
        kernel.send("P")
        if kernel.control.recv(16) != b"P":
            raise RuntimeError("it did not rest")
        report(f"{name}: rest", asked)
        if len(os.listdir(f"/proc/{kernel.process.pid}/task")) != 1:
            raise RuntimeError(f"{name} does not rest")
        report(f"{name}: use after it", run(kernel, use))
    kernel.close()


for case, (library, code, again) in CASES.items():
    measure(case, library, code, again, int(sys.argv[1]))
