"""What a cell finds around it: a plain interpreter, an environment, a directory, its packages."""

import os
import shutil
import tempfile
import textwrap
import unittest

from harness import KernelTest


class World(KernelTest):
    def test_main(self):
        self.assertEqual(self.value("__name__, __doc__"), "('__main__', None)")
        self.assertEqual(self.value("import sys\nsys.modules['__main__'].__dict__ is globals()"), "True")

    def test_no_file(self):
        self.fails("__file__", "NameError")

    def test_arguments(self):
        self.assertEqual(self.value("import sys\nsys.argv"), "['']")

    def test_path(self):
        code = "import sys\n(sys.path[0], [p for p in sys.path if 'kernels' in p])"
        self.assertEqual(self.value(code), "('', [])")

    def test_names_of_the_kernel_are_not_importable(self):
        self.fails("import session", "ModuleNotFoundError")

    def test_namespace_is_clean(self):
        kernel = self.own()
        names = kernel.run("sorted(n for n in globals() if not n.startswith('_'))")
        self.assertEqual(names.text, "['In', 'Out']")

    def test_pickle(self):
        self.run_cell("import pickle\nclass P:\n    pass\np = P()\np.a = 5")
        self.assertEqual(self.value("pickle.loads(pickle.dumps(p)).a"), "5")

    def test_dataclass_and_enum(self):
        code = """
            import dataclasses, enum, typing
            @dataclasses.dataclass
            class D:
                x: int
                y: typing.List[int] = dataclasses.field(default_factory=list)
            class E(enum.Enum):
                A = 1
            typing.get_type_hints(D)['x'].__name__, E.A.value, D(1)
        """
        self.assertEqual(self.value(textwrap.dedent(code)), "('int', 1, D(x=1, y=[]))")

    def test_warnings_are_shown_once(self):
        cell = self.run_cell("import warnings\nwarnings.warn('careful')")
        self.assertIn("UserWarning: careful", cell.err)

    def test_logging(self):
        cell = self.run_cell("import logging\nlogging.warning('%s', 'w')")
        self.assertEqual(cell.err, "WARNING:root:w\n")

    def test_get_ipython(self):
        self.assertEqual(self.value("get_ipython().user_ns is globals()"), "True")

    def test_help(self):
        self.assertIn("built-in function", self.run_cell("help(len)").out)

    def test_bytecode_is_written(self):
        self.assertEqual(self.value("import sys\nsys.dont_write_bytecode"), "False")

    def test_module_in_the_directory(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "beside_me.py"), "w") as file:
                file.write("value = 'found'")
            kernel = self.own()
            kernel.send("D", folder)
            self.assertEqual(kernel.run("import beside_me\nbeside_me.value").text, "found")


class Packets(KernelTest):
    def test_environment(self):
        self.kernel.send("G", "SG_GLOBAL=one=1")
        self.assertEqual(self.value("import os\nos.environ['SG_GLOBAL']"), "one=1")
        self.assertEqual(self.run_cell("!echo $SG_GLOBAL").out, "one=1\n")

    def test_variables_of_a_cell(self):
        self.kernel.send("G", "SG_A=before")
        self.kernel.send("V", "SG_A=during")
        self.kernel.send("V", "SG_A=again")
        self.kernel.send("V", "SG_B=new")
        read = "import os\nos.environ.get('SG_A'), os.environ.get('SG_B')"
        self.assertEqual(self.value(read), "('again', 'new')")
        self.assertEqual(self.value(read), "('before', None)")

    def test_variables_are_put_back_after_an_error(self):
        self.kernel.send("V", "SG_C=1")
        self.run_cell("1/0")
        self.assertEqual(self.value("import os\n'SG_C' in os.environ"), "False")

    def test_odd_variables(self):
        for payload in (b"", b"=x", b"NOVALUE", b"SG_BYTES=\xff\xfe", b"SG_EMPTY="):
            self.kernel.send("G", payload)
        self.assertEqual(self.value("import os\nos.environb[b'SG_BYTES']"), "b'\\xff\\xfe'")

    def test_time_zone(self):
        self.kernel.send("G", "TZ=UTC-5")
        self.assertEqual(self.value("import time\ntime.timezone"), "-18000")

    def test_directory(self):
        self.kernel.send("D", "/usr")
        self.assertEqual(self.value("import os\nos.getcwd()"), "/usr")

    def test_directory_is_created(self):
        base = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, base)
        self.kernel.send("D", base + "/a/b")
        self.assertEqual(self.value("import os\nos.getcwd()"), base + "/a/b")

    def test_directory_that_cannot_be(self):
        self.kernel.send("G", "HOME=/var")
        self.kernel.send("D", "/proc/nothing/here")
        self.assertEqual(self.value("import os\nos.getcwd()"), "/var")


class Packages(KernelTest):
    """A package that appears in the user's own site-packages while the kernel runs."""

    def setUp(self):
        self.home = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.home)
        self.kernel = self.own()
        self.kernel.send("G", "HOME=" + self.home)
        self.site = f"{self.home}/.local/lib/python3.11/site-packages"

    def install(self):
        os.makedirs(self.site)
        with open(self.site + "/sg_new.py", "w") as file:
            file.write("value = 'installed'")

    def test_between_cells(self):
        self.fails("import sg_new", "ModuleNotFoundError")
        self.install()
        self.assertEqual(self.value("import sg_new\nsg_new.value"), "installed")

    def test_in_the_same_cell(self):
        code = f"""
            import os
            os.makedirs({self.site!r})
            with open({self.site!r} + '/sg_new.py', 'w') as f: f.write('value = 2')
            import sg_new
            sg_new.value
        """
        self.assertEqual(self.value(textwrap.dedent(code)), "2")

    def test_comes_before_the_system(self):
        self.install()
        code = f"import sys\nsys.path.index({self.site!r}) < sys.path.index('/usr/lib/python3/dist-packages')"
        self.assertEqual(self.value(code), "True")

    def test_pip_install(self):
        """A package from a folder, without any network."""
        wheel = f"{self.home}/sgdemo-1.0-py3-none-any.whl"
        make = f"""
            import zipfile
            with zipfile.ZipFile({wheel!r}, 'w') as z:
                z.writestr('sgdemo.py', 'value = "by pip"')
                z.writestr('sgdemo-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: sgdemo\\nVersion: 1.0\\n')
                z.writestr('sgdemo-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
                z.writestr('sgdemo-1.0.dist-info/RECORD', '')
        """
        self.run_cell(textwrap.dedent(make))
        cell = self.run_cell(f"%pip install --user --no-index {wheel}\nimport sgdemo\nsgdemo.value")
        self.assertEqual(cell.text, "by pip", cell.events)
        self.assertIn("Successfully installed", cell.out)


class Await(KernelTest):
    def test_value(self):
        self.assertEqual(self.value("import asyncio\nawait asyncio.sleep(0, 'slept')"), "slept")

    def test_single_line(self):
        self.run_cell("async def f(): return 5")
        self.assertEqual(self.value("await f()"), "5")

    def test_names_persist(self):
        self.run_cell("import asyncio\nq = await asyncio.sleep(0, 1)")
        self.assertEqual(self.value("q"), "1")

    def test_async_for_and_with(self):
        code = """
            import contextlib
            @contextlib.asynccontextmanager
            async def c():
                yield 'in'
            async def g():
                for i in range(3): yield i
            got = []
            async with c() as x:
                async for i in g(): got.append((x, i))
            [i async for i in g()], got[-1]
        """
        self.assertEqual(self.value(textwrap.dedent(code)), "([0, 1, 2], ('in', 2))")

    def test_loop_is_the_same(self):
        self.run_cell("import asyncio\na = asyncio.get_running_loop()\nawait asyncio.sleep(0)")
        self.assertEqual(self.value("await asyncio.sleep(0)\n"
                                    "a is asyncio.get_running_loop()"), "True")

    def test_task_of_an_earlier_cell(self):
        self.run_cell("import asyncio\nt = asyncio.create_task(asyncio.sleep(0.01, 'done'))")
        self.assertEqual(self.value("await t"), "done")

    def test_asyncio_run(self):
        self.run_cell("import asyncio\nasync def m():\n    await asyncio.sleep(0)\n    return 8")
        self.assertEqual(self.value("asyncio.run(m())"), "8")
        self.assertEqual(self.value("await m()"), "8")

    def test_error(self):
        self.fails("import asyncio\nawait asyncio.wait_for(asyncio.sleep(5), 0.01)", "TimeoutError")

    def test_exit(self):
        self.fails("import asyncio\nawait asyncio.sleep(0)\nexit(1)", "SystemExit")
        self.assertEqual(self.value("await asyncio.sleep(0, 3)"), "3")

    def test_await_inside_a_function_is_an_error(self):
        self.fails("def f():\n    await x", "SyntaxError")

    def test_subprocess(self):
        code = """
            import asyncio
            p = await asyncio.create_subprocess_exec('echo', 'hi', stdout=asyncio.subprocess.PIPE)
            (await p.communicate())[0]
        """
        self.assertEqual(self.value(textwrap.dedent(code)), "b'hi\\n'")


if __name__ == "__main__":
    unittest.main()
