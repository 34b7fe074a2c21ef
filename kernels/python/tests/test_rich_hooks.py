"""Libraries are hooked when the user imports them; nothing is imported before. Each test is a
program of its own, because what is imported stays so."""

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest

HOME = pathlib.Path(__file__).resolve().parent.parent

PROLOGUE = """
import sys
sys.path.insert(0, {home!r})
from _sandglass import rich
shown = []
rich.install(shown.append)
"""

# Hides an installed IPython, as in a template that has none.
NO_IPYTHON = """
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "IPython":
            import importlib.machinery
            for finder in sys.meta_path[2:]:
                if type(finder).__module__ == "_sandglass.rich.standin":
                    return finder.find_spec(name, path, target)
        return None
sys.meta_path.insert(0, Hidden())
sys.meta_path.insert(1, sys.meta_path.pop(0))
"""


class Programs(unittest.TestCase):
    def run_code(self, code, before="", **environment):
        env = {key: value for key, value in os.environ.items() if key != "MPLBACKEND"} | environment
        program = before + PROLOGUE.format(home=str(HOME)) + textwrap.dedent(code)
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-c", program],
                env=env,
                cwd=folder,
                text=True,
                capture_output=True,
                timeout=120,
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_nothing_is_imported(self):
        self.run_code(
            """
            rich.bundle(1); rich.bundle([1]); rich.bundle(object()); rich.figures()
            for name in ("numpy", "pandas", "matplotlib", "PIL", "plotly", "sympy", "IPython"):
                assert name not in sys.modules, name
        """
        )

    def test_installed_twice(self):
        self.run_code(
            """
            before = list(sys.meta_path)
            rich.install()
            assert sys.meta_path == before
        """
        )

    def test_module_is_as_without_the_hook(self):
        self.run_code(
            """
            import PIL.Image, importlib.machinery, inspect
            assert type(PIL.Image.__loader__) is importlib.machinery.SourceFileLoader
            assert PIL.Image.__spec__.loader is PIL.Image.__loader__
            assert inspect.getsource(PIL.Image)
        """
        )

    def test_module_that_does_not_exist(self):
        self.run_code(
            """
            sys.modules["plotly"] = None
            try:
                import plotly.basedatatypes
            except ImportError:
                pass
            else:
                raise AssertionError
        """
        )

    def test_loaded_before(self):
        self.run_code(
            """
            plt.boxplot([[1, 2, 3]])
            plt.show()
            assert shown[0]["chart"]["type"] == "box_and_whisker"
            Image.new("RGB", (1, 1)).show()
            assert "png" in shown[1]
            assert pandas.get_option("display.max_columns") == 20
        """,
            before="import matplotlib.pyplot as plt, pandas\nfrom PIL import Image\n",
        )

    def test_pandas_does_not_import_ipython(self):
        self.run_code(
            """
            import builtins
            builtins.get_ipython = lambda: calls.append(1)
            calls = []
            import pandas
            assert pandas.get_option("display.max_columns") == 20
            assert rich.bundle(pandas.DataFrame({"a": [1]}))["text"] == "   a\\n0  1"
            assert not calls
        """
        )

    def test_show_imported_by_name(self):
        self.run_code(
            """
            from matplotlib.pyplot import plot, show
            plot([1, 2])
            show()
            assert "png" in shown[0]
        """
        )

    def test_default_backend(self):
        out = self.run_code(
            """
            import matplotlib
            print(matplotlib.get_backend().lower())
            import matplotlib.pyplot
            assert "MPLBACKEND" not in __import__("os").environ
        """
        )
        self.assertEqual(out, "agg\n")

    def test_backend_of_the_environment(self):
        out = self.run_code(
            """
            import matplotlib.pyplot as plt
            plt.plot([1, 2])
            print(plt.get_backend().lower())
        """,
            MPLBACKEND="svg",
        )
        self.assertEqual(out, "svg\n")

    def test_backend_of_the_environment_after_the_import(self):
        out = self.run_code(
            """
            import os, matplotlib.pyplot as plt
            os.environ["MPLBACKEND"] = "svg"
            rich.install()
            print(plt.get_backend().lower())
        """
        )
        self.assertEqual(out, "svg\n")

    def test_backend_of_the_user(self):
        self.run_code(
            """
            import matplotlib
            matplotlib.use("pdf")
            import matplotlib.pyplot as plt
            plt.plot([1, 2])
            assert plt.get_backend().lower() == "pdf"
            assert "png" in rich.figures()[0]
        """
        )

    def test_ipython_display(self):
        self.run_code(
            IPYTHON_DISPLAY
            + """
            from IPython.display import Audio
            display(Audio(b"RIFF", rate=8000))
            assert "<audio" in shown[-1]["html"], shown[-1]
        """
        )

    def test_ipython_display_without_ipython(self):
        self.run_code(
            NO_IPYTHON
            + textwrap.dedent(IPYTHON_DISPLAY)
            + textwrap.dedent(
                """
            import IPython
            assert IPython.__version__ == "0.0.0"
            assert IPython.get_ipython() is None
            import matplotlib.pyplot as plt
            plt.plot([1, 2])
            plt.show()
            assert "png" in shown[-1]
        """
            )
        )


IPYTHON_DISPLAY = """
            from IPython.display import (display, HTML, Markdown, SVG, Latex, Math, JSON, Image,
                                         Javascript, Pretty, clear_output, update_display)
            display(HTML("<b>"), Markdown("*m*"), Latex("$x$"), Math("y"), Javascript("1+1"))
            clear_output()
            fields = [set(one) - {"text"} for one in shown]
            assert fields == [{"html"}, {"markdown"}, {"latex"}, {"latex"}, {"javascript"}], fields
            assert shown[0]["text"] == "<IPython.core.display.HTML object>", shown[0]
            assert shown[3]["latex"] == "$\\\\displaystyle y$", shown[3]
            shown.clear()
            display({"text/latex": "x"}, raw=True)
            assert shown == [{"latex": "x"}], shown
            assert rich.bundle(JSON({"a": [1]}))["json"] == {"a": [1]}
            svg = rich.bundle(SVG("<svg xmlns='http://www.w3.org/2000/svg'></svg>"))
            assert "<svg" in svg["svg"], svg
            png = b"\\x89PNG\\r\\n\\x1a\\n" + bytes(20)
            import base64
            assert base64.b64decode(rich.bundle(Image(png))["png"]) == png
            assert rich.bundle(Image(b"\\xff\\xd8\\xff\\xe0" + bytes(20)))["jpeg"]
            assert "image/gif" in rich.bundle(Image(b"GIF89a" + bytes(20), format="gif"))["extra"]
            with open("p.png", "wb") as file:
                file.write(png)
            assert base64.b64decode(rich.bundle(Image("p.png"))["png"]) == png
            assert "http://x/y.png" in rich.bundle(Image(url="http://x/y.png"))["html"]
            assert rich.bundle(Pretty("as it is"))["text"] == "as it is"
            shown.clear()
            handle = display(1, display_id="a")
            handle.update(2)
            update_display(3, display_id="a")
            assert [one["text"] for one in shown] == ["1", "2", "3"], shown
"""


if __name__ == "__main__":
    unittest.main()
