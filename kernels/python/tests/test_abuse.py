"""Cells that break what the kernel stands on. The next cell works."""

import unittest

from harness import KernelTest


class Abuse(KernelTest):
    def survives(self, code, out="still here\n"):
        kernel = self.own()
        cell = kernel.run(code)
        self.assertFalse(cell.died)
        after = kernel.run("print('still here')\n1 + 1")
        self.assertEqual((after.out, after.text), (out, "2"))
        return cell

    def test_close_stdout(self):
        self.survives("import os\nos.close(1)")

    def test_print_after_closing_it(self):
        self.assertEqual(self.survives("import os\nos.close(1)\nprint('x')").out, "x\n")

    def test_close_0_to_2(self):
        self.survives("import os\nos.closerange(0, 3)")

    def test_close_control(self):
        cell = self.survives("import os\nos.close(3)\ndisplay(5)\n6")
        self.assertEqual([r["text"] for r in cell.results], ["5", "6"])

    def test_close_0_to_100(self):
        self.survives("import os\nos.closerange(0, 100)")

    def test_control_number_becomes_a_file(self):
        kernel = self.own()
        kernel.run("import os\nos.close(3)\nf = open('/dev/null', 'w')\ndisplay(1)\nf.fileno()")
        self.assertEqual(kernel.run("f.write('mine'), f.fileno()").text, "(4, 3)")
        self.assertEqual(kernel.run("2").text, "2")

    def test_close_everything_ends_it(self):
        self.assertTrue(self.own().run("import os\nos.closerange(0, 100000)").died)

    def test_close_sys_stdout(self):
        self.survives("import sys\nsys.stdout.close()\nsys.stderr.close()")

    def test_detach(self):
        self.survives("import sys\nsys.stdout.detach();")

    def test_stdout_none(self):
        self.survives("import sys\nsys.stdout = None\nsys.stderr = None")

    def test_stdout_deleted(self):
        self.survives("import sys\ndel sys.stdout, sys.stderr")

    def test_stdout_without_methods(self):
        self.survives("import sys\nsys.stdout = object()")

    def test_stdout_closed_file(self):
        self.survives("import sys\nsys.stdout = open('/dev/null', 'w')\nsys.stdout.close()")

    def test_stdout_of_the_user_stays(self):
        kernel = self.own()
        kernel.run("import sys\nclass Tee:\n    def __init__(self, s): self.s = s\n"
                   "    def write(self, t): self.s.write(t.upper())\n    def flush(self): pass\n"
                   "sys.stdout = Tee(sys.stdout)")
        self.assertEqual(kernel.run("print('loud')").out, "LOUD\n")

    def test_stdout_that_keeps_things_back(self):
        kernel = self.own()
        cell = kernel.run("import io, os, sys\nsys.stdout = io.TextIOWrapper(open(os.dup(1), 'wb'))\nprint('held')")
        self.assertEqual(cell.out, "held\n")

    def test_fork(self):
        cell = self.survives("import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\n"
                             "print('end')\n'value'")
        self.assertEqual(cell.out, "end\nend\n")
        self.assertEqual([r["text"] for r in cell.results], ["value"])

    def test_fork_child_fails(self):
        cell = self.survives(
            "import os\npid = os.fork()\nif not pid: 1/0\nprint(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
        )
        self.assertEqual(cell.out, "1\n")
        self.assertIn("ZeroDivisionError", cell.err)
        self.assertIsNone(cell.error)

    def test_fork_child_exits(self):
        cell = self.survives(
            "import os, sys\npid = os.fork()\nif not pid: sys.exit(7)\n"
            "os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])"
        )
        self.assertEqual([r["text"] for r in cell.results], ["7"])

    def test_fork_child_displays(self):
        cell = self.survives("import os\npid = os.fork()\nif not pid: display('child')\n"
                             "else: os.waitpid(pid, 0)")
        self.assertEqual(cell.out, "child\n")
        self.assertEqual(cell.results, [])

    def test_multiprocessing(self):
        kernel = self.own()
        kernel.run("import multiprocessing as m\ndef f(x): return x * x")
        self.assertEqual(kernel.run("with m.Pool(2) as p: r = p.map(f, [1, 2, 3])\n"
                                    "r").text, "[1, 4, 9]")

    def test_programs_do_not_get_the_socket(self):
        cell = self.run_cell("!ls -l /proc/self/fd")
        self.assertNotIn("socket:", cell.out)
        cell = self.run_cell("import os; os.system('ls -l /proc/self/fd');")
        self.assertNotIn("socket:", cell.out)

    def test_builtins_deleted(self):
        self.survives("import builtins\ndel builtins.display, builtins.get_ipython")

    def test_globals_cleared(self):
        self.survives("globals().clear()")

    def test_main_replaced(self):
        self.survives("import sys\ndel sys.modules['__main__']")

    def test_modules_shadowed(self):
        self.survives("import sys\nsys.modules['json'] = None\nsys.modules['traceback'] = None\n"
                      "1/0")

    def test_modules_patched(self):
        self.survives("import os, json, linecache\nlinecache.cache = None\njson.dumps = None\n"
                      "{'a': 1}")

    def test_directory_removed(self):
        self.survives("import os, tempfile\nd = tempfile.mkdtemp()\nos.chdir(d)\nos.rmdir(d)")

    def test_environment_cleared(self):
        self.survives("import os\nos.environ.clear()")

    def test_loop_closed(self):
        kernel = self.own()
        kernel.run("import asyncio\nawait asyncio.sleep(0)\nloop = asyncio.get_running_loop()")
        kernel.run("loop.close()")
        self.assertEqual(kernel.run("await asyncio.sleep(0, 'ok')").text, "ok")

    def test_loop_descriptors_closed(self):
        kernel = self.own()
        kernel.run("import asyncio, os\nawait asyncio.sleep(0)")
        kernel.run("os.closerange(4, 100)")
        self.assertEqual(kernel.run("await asyncio.sleep(0.01, 'ok')").text, "ok")

    def test_non_blocking_output(self):
        kernel = self.own()
        cell = kernel.run("import os\nos.set_blocking(1, False)\nprint('z' * 5_000_000)")
        self.assertEqual(len(cell.out), 5_000_001)

    def test_trace_functions(self):
        self.survives("import sys\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)")

    def test_low_limit_of_descriptors(self):
        self.survives("import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))")

    def test_output_that_looks_like_packets(self):
        cell = self.survives("print('F\\x01\\0\\0\\0')\nprint('Rm')")
        self.assertEqual(cell.out, "F\x01\0\0\0\nRm\n")

    def test_gc_disabled_and_frozen(self):
        self.survives("import gc\ngc.disable()\ngc.freeze()")


if __name__ == "__main__":
    unittest.main()
