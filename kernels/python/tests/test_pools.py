"""Thread pools of numeric libraries: they rest when the agent asks for it, and are back when needed."""

import glob
import os
import subprocess
import tempfile
import textwrap
import unittest

from harness import Kernel

LIBRARIES = os.path.dirname(os.path.dirname(glob.glob("/usr/lib/*/blas/libblas.so.3")[0]))
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", "OMP_NUM_THREADS": "3"}
PRODUCT = textwrap.dedent(
    """
    import numpy as np
    m = np.random.default_rng(5).random((400, 400))
    first = m @ m
    """
)
# A library with a pool, whose functions have the names that wheels give them.
POOL = """
#include <pthread.h>
static pthread_t workers[64];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int size = 3, running, ends;
static void *work(void *arg)
{
    pthread_mutex_lock(&lock);
    while (!ends)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return arg;
}
int scipy_openblas_get_num_threads64_(void) { return size; }
void scipy_openblas_set_num_threads64_(int n) { size = n; }
int compute(void)
{
    for (; running < size - 1; running++)
        pthread_create(&workers[running], NULL, work, NULL);
    return running + 1;
}
int SHUTDOWN(void)
{
    pthread_mutex_lock(&lock);
    ends = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    while (running > 0)
        pthread_join(workers[--running], NULL);
    ends = 0;
    return 0;
}
"""


class Pools(unittest.TestCase):
    def kernel(self, **environment):
        kernel = Kernel(environment={**ENVIRONMENT, **environment})
        self.addCleanup(kernel.close)
        return kernel

    def value(self, kernel, code):
        cell = kernel.run(code)
        self.assertIsNone(cell.error, cell.error)
        return cell.text

    def threads(self, kernel):
        return len(os.listdir(f"/proc/{kernel.process.pid}/task"))

    def rests(self, kernel):
        kernel.send("P")
        self.assertFalse(kernel.finish().died)
        return self.threads(kernel)

    def check_blas(self, name):
        # The reference has its LAPACK elsewhere; what the machine prefers may be another one's.
        kernel = self.kernel(LD_LIBRARY_PATH=f"{LIBRARIES}/{name}:{LIBRARIES}/lapack")
        self.value(kernel, PRODUCT)
        self.assertIn(f"/{name}/", self.value(kernel, "open('/proc/self/maps').read()"))
        before = self.threads(kernel)
        for _ in range(3):
            self.assertEqual(self.rests(kernel), 1)
            self.assertEqual(self.value(kernel, "bool((m @ m == first).all())"), "True")
            self.assertEqual(self.threads(kernel), before, "they are back")
        return before

    def test_openblas(self):
        expected = min(3, len(os.sched_getaffinity(0)))
        self.assertEqual(self.check_blas("openblas-pthread"), expected)

    def test_openblas_with_openmp(self):
        self.assertEqual(self.check_blas("openblas-openmp"), 3)

    def test_reference(self):
        self.assertEqual(self.check_blas("blas"), 1)

    def test_names_of_wheels(self):
        for shutdown in ("blas_thread_shutdown_", "scipy_blas_thread_shutdown_64_"):
            with tempfile.TemporaryDirectory() as folder:
                library = f"{folder}/libscipy_openblas64_-ff651d7f.so"
                command = ["gcc", "-shared", "-fPIC", "-pthread", "-x", "c", "-", "-o", library]
                command.append(f"-DSHUTDOWN={shutdown}")
                subprocess.run(command, input=POOL, text=True, check=True)
                kernel = self.kernel()
                begin = f"import ctypes\nlib = ctypes.CDLL({library!r})\nlib.compute()"
                self.assertEqual(self.value(kernel, begin), "3")
                for _ in range(2):
                    self.assertEqual(self.threads(kernel), 3)
                    self.assertEqual(self.rests(kernel), 1)
                    self.assertEqual(self.value(kernel, "lib.compute()"), "3")
                # A size that is given later counts from the next cell on.
                kernel.send("G", "OPENBLAS_NUM_THREADS=1")
                size = "lib.scipy_openblas_get_num_threads64_()"
                self.assertEqual(self.value(kernel, size), "1")

    def test_numexpr_is_back_when_it_evaluates(self):
        # With a BLAS that has no threads of its own to be counted.
        kernel = self.kernel(LD_LIBRARY_PATH=f"{LIBRARIES}/blas:{LIBRARIES}/lapack")
        self.value(kernel, "import numexpr, numpy as np\na = np.arange(1e5)")
        before = self.threads(kernel)
        for _ in range(2):
            self.assertEqual(self.rests(kernel), 1)
            self.value(kernel, "1")
            self.assertEqual(self.threads(kernel), 1, "not before")
            self.assertEqual(self.value(kernel, "float(numexpr.evaluate('a + 1')[-1])"), "100000.0")
            self.assertEqual(self.threads(kernel), before)

    def test_numexpr_where_no_thread_can_be_started(self):
        kernel = self.kernel()
        self.value(kernel, "import numexpr, _thread, numpy as np\na = np.arange(1e5)")
        self.assertEqual(self.rests(kernel), 1)
        self.value(kernel, "def no(*a): raise RuntimeError\n_thread.start_new_thread = no")
        self.assertEqual(self.value(kernel, "float(numexpr.evaluate('a + 1')[-1])"), "100000.0")
        self.assertEqual(self.threads(kernel), 1)

    def test_a_thread_of_python_keeps_all(self):
        kernel = self.kernel(LD_LIBRARY_PATH=f"{LIBRARIES}/openblas-openmp")
        self.value(kernel, PRODUCT)
        self.value(
            kernel,
            "import threading\nstop = threading.Event()\n"
            "threading.Thread(target=stop.wait, daemon=True).start()",
        )
        before = self.threads(kernel)
        self.assertEqual(self.rests(kernel), before)
        self.assertEqual(self.value(kernel, "bool((m @ m == first).all())"), "True")

    def test_without_threads_there_is_nothing_to_do(self):
        kernel = self.kernel()
        self.assertEqual(self.rests(kernel), 1)
        self.assertEqual(self.value(kernel, "1 + 1"), "2")

    def test_broken_libraries(self):
        kernel = self.kernel(LD_LIBRARY_PATH=f"{LIBRARIES}/openblas-openmp")
        self.value(kernel, PRODUCT)
        self.value(kernel, "import sys\nsys.modules['numexpr'] = sys.modules['numba'] = None\n")
        self.value(kernel, "sys.modules['joblib.externals.loky.reusable_executor'] = 7")
        self.assertEqual(self.rests(kernel), 1)


if __name__ == "__main__":
    unittest.main()
