"""Jupyter kernels, with the one that every installation of ipykernel brings."""
import json
import os
import unittest

from harness import CellTest, Kernel


IPYKERNEL = ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]


class JupyterTest(CellTest):
    language = "python3"


class Cells(JupyterTest):
    def test_value(self):
        self.check("1 + 1", "2")
        self.check("'text'", "'text'")

    def test_no_value(self):
        for code in ("", "x = 1", "None", "5;"):
            self.check(code)

    def test_state(self):
        self.check("def f(n):\n    return n * 2\ny = 4")
        self.check("f(y)", "8")

    def test_streams(self):
        self.check("import sys\nprint('out')\nprint('err', file=sys.stderr)", None,
                   "out\n", "err\n")

    def test_output_of_programs(self):
        self.check("import subprocess; subprocess.run(['echo', 'child']);", None, "child\n")

    def test_display(self):
        answer = self.run_cell(
            "from IPython.display import HTML, Markdown, JSON\n"
            "display(HTML('<b>h</b>'), Markdown('*m*'), JSON({'a': [1]}))\n'last'")
        self.assertEqual([kind for kind, _ in answer.results], ["d", "d", "d", "m"])
        self.assertEqual(answer.results[0][1]["html"], "<b>h</b>")
        self.assertEqual(answer.results[1][1]["markdown"], "*m*")
        self.assertEqual(answer.results[2][1]["json"], {"a": [1]})

    def test_unknown_type(self):
        answer = self.run_cell("display({'app/own': {'k': 1}, 'text/plain': 't'}, raw=True)")
        self.assertEqual(answer.results, [("d", {"text": "t", "extra": {"app/own": {"k": 1}}})])

    def test_unicode(self):
        self.check("print('żółw 🐢')", None, "żółw 🐢\n", pieces=4)

    def test_much_output(self):
        answer = self.run_cell("for i in range(2000): print('x' * 500)")
        self.assertEqual(len(answer.out), 2000 * 501)


class Errors(JupyterTest):
    def test_error(self):
        error = self.error("def f():\n    return 1 / 0\nf()")
        self.assertEqual((error["name"], error["value"]), ("ZeroDivisionError", "division by zero"))
        self.assertIn("return 1 / 0", error["traceback"])
        self.assertNotIn("\x1b", error["traceback"])

    def test_syntax_error(self):
        self.assertEqual(self.error("if")["name"], "SyntaxError")

    def test_input_is_refused(self):
        answer = self.run_cell("print('before')\ninput('? ')\nprint('after')")
        self.assertEqual(answer.stdout, "before\n")
        error, = answer.errors
        self.assertIn("standard input", error["value"])
        self.check("1", "1")

    def test_interrupt(self):
        self.check("kept = 1")
        for code in ("print('go')\nwhile True: pass", "import time\nprint('go')\ntime.sleep(60)"):
            answer = self.interrupt_when(code, "go")
            self.assertEqual([e["name"] for e in answer.errors], ["KeyboardInterrupt"])
        self.check("kept", "1")

    def test_interrupt_between_cells(self):
        self.check("alive = 1")
        self.kernel.interrupt_between_cells()
        self.check("alive", "1")

    def test_variables_for_one_cell(self):
        answer = self.run_cell("import os; os.environ.get('V')", env={"V": "1"})
        self.assertIn("cannot be given variables", answer.stderr)


class Life(JupyterTest):
    shared = False

    def test_environment_and_death(self):
        kernel = self.new_kernel(environment={"FIRST": "a b"})
        self.assertEqual(kernel.run("import os; os.environ['FIRST'], os.getcwd()").text,
                         f"('a b', '{self.directory}')")
        answer = kernel.run("os._exit(3)")
        error, = answer.errors
        self.assertEqual(error["name"], "KernelDied")
        self.assertIn("status 3", error["value"])
        self.assertEqual(kernel.run("1").text, "1")
        kernel.close()

    def test_unknown_name(self):
        for name in ("nosuchkernel", "../python3", ".."):
            kernel = Kernel(name)
            error, = kernel.run("1").errors
            self.assertEqual(error["name"], "KernelError")
            self.assertIn(name, error["value"])
            kernel.close()

    def spec(self, content):
        folder = os.path.join(self.directory, "kernels", "own")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "kernel.json"), "w") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        return self.new_kernel(environment={"JUPYTER_PATH": self.directory}, language="own")

    def test_own_spec(self):
        kernel = self.spec({"argv": IPYKERNEL, "env": {"FROM_SPEC": "yes"},
                            "interrupt_mode": "signal"})
        self.assertEqual(kernel.run("import os; os.environ['FROM_SPEC']").text, "'yes'")
        kernel.close()

    def test_interrupt_by_message(self):
        kernel = self.spec({"argv": IPYKERNEL, "interrupt_mode": "message"})
        kernel.start("print('go')\nwhile True: pass")
        kernel.finish(until=lambda a: "go" in a.stdout)
        answer = kernel.interrupt_until_end()
        self.assertEqual([e["name"] for e in answer.errors], ["KeyboardInterrupt"])
        kernel.close()

    def test_broken_specs(self):
        for content, text in (("{", "cannot be used"), ("[]", "names no program"),
                              ({"argv": []}, "names no program"),
                              ({"argv": ["nosuchprogram"]}, "not installed"),
                              ({"argv": ["false"]}, "ended with status 1")):
            kernel = self.spec(content)
            error, = kernel.run("1").errors
            self.assertEqual(error["name"], "KernelError")
            self.assertIn(text, error["value"])
            kernel.close()


if __name__ == "__main__":
    unittest.main()
