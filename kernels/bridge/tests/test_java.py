"""The Java kernel."""
import unittest

from harness import CellTest


class JavaTest(CellTest):
    language = "java"


class Cells(JavaTest):
    def test_value(self):
        self.check("1 + 1", "2")
        self.check('"a" + "b"', 'ab')
        self.check('Object o = "a"; o', '"a"')
        self.check("new int[] {1, 2}", "int[2] { 1, 2 }")
        self.check("List.of(1, 2)", "[1, 2]")

    def test_no_value(self):
        for code in ("", "// comment", "int q = 5;", "q = 6", "1 + 1;", "/* a */", "null"):
            self.check(code)

    def test_state(self):
        self.check("int x = 5;\nint twice(int n) {\n    return n * 2;\n}")
        self.check("record Point(int a, int b) {}")
        self.check("new Point(twice(x), 1)", "Point[a=10, b=1]")

    def test_redefinition(self):
        self.check("int r = 1; String s() { return \"one\"; }")
        self.check("String r = \"two\"; String s() { return \"two\"; }")
        self.check("r + s()", 'twotwo')

    def test_streams_in_order(self):
        self.check('for (int i = 0; i < 3; i++) {\n  System.out.println("o" + i);\n'
                   '  System.err.println("e" + i);\n}', None, "o0\no1\no2\n", "e0\ne1\ne2\n")
        self.check('System.out.print("no newline")', None, "no newline")

    def test_imports(self):
        self.check("import java.time.LocalDate;")
        self.check("LocalDate.of(2024, 2, 29).plusYears(1)", "2025-02-28")
        self.check("Stream.of(3, 1, 2).sorted().collect(Collectors.toList())", "[1, 2, 3]")

    def test_unicode(self):
        self.check('System.out.println("żółw 🐢"); "żółw".length()', "4", "żółw 🐢\n",
                   pieces=5)

    def test_class_with_many_lines(self):
        self.check("class Counter {\n  private int n;\n\n  int next() {\n    return ++n;\n  }\n}\n"
                   "var c = new Counter();\nc.next();\nc.next()", "2")

    def test_threads(self):
        self.check('Thread t = new Thread(() -> System.out.println("thread"));\n'
                   't.start();\nt.join();', None, "thread\n")

    def test_child_process(self):
        self.check('var p = new ProcessBuilder("echo", "child").start();\n'
                   'new String(p.getInputStream().readAllBytes()).trim()', 'child')

    def test_input_is_refused(self):
        error = self.error("System.in.read()")
        self.assertEqual(error["name"], "java.io.IOException")
        self.assertIn("standard input is not available", error["value"])


class Errors(JavaTest):
    def test_exception(self):
        self.check("int divide(int a, int b) {\n    return a / b;\n}")
        error = self.error("int before = 1;\ndivide(before, 0)")
        self.assertEqual(error["name"], "java.lang.ArithmeticException")
        self.assertEqual(error["value"], "/ by zero")
        lines = error["traceback"].splitlines()
        self.assertEqual(lines[0], "java.lang.ArithmeticException: / by zero")
        self.assertRegex(lines[1], r"at divide \(line 2 of cell \d+\)")
        self.assertIn("at line 2 of the cell", lines[2])

    def test_cause(self):
        error = self.error('throw new IllegalStateException("bad", new RuntimeException("why"));')
        self.assertIn("Caused by: java.lang.RuntimeException: why", error["traceback"])

    def test_compile_error(self):
        error = self.error("int a = 1;\nint b = nope + 1;")
        self.assertEqual(error["name"], "CompileError")
        self.assertEqual(error["value"], "line 2: cannot find symbol")
        self.assertIn("    int b = nope + 1;\n            ^", error["traceback"])

    def test_ends_the_cell(self):
        answer = self.run_cell('System.out.println("a");\nint z = "text";\n'
                               'System.out.println("b");')
        self.assertEqual((answer.stdout, len(answer.errors)), ("a\n", 1))

    def test_incomplete_and_invalid(self):
        self.assertIn("ends too early", self.error("class A {")["value"])
        self.assertEqual(self.error("int 5x = ;")["name"], "CompileError")
        self.assertEqual(self.error(") 1")["name"], "CompileError")
        self.check("1", "1")

    def test_unresolved(self):
        answer = self.run_cell("int later() { return notYet(); }")
        self.assertIn("notYet() must be declared", answer.stderr)
        self.assertEqual(self.error("later()")["name"], "UnresolvedReference")
        self.check("int notYet() { return 7; }\nlater()", "7")

    def test_deep_recursion(self):
        self.check("int deep(int n) { return deep(n + 1) + 1; }")
        self.assertEqual(self.error("deep(0)")["name"], "java.lang.StackOverflowError")
        self.check("1", "1")


class Life(JavaTest):
    def test_environment(self):
        self.check('System.getenv("V")', '1=2', env={"V": "1=2"})
        self.check('System.getenv("V")')
        self.check('System.getProperty("V")', '3', env={"V": "3"})
        self.check('System.getProperty("V")')
        self.check('System.getProperty("line.separator").length()', '1', env={"line.separator": "long"})
        self.check('System.getenv("HOME") + System.getProperty("user.dir")',
                   f'/tmp{self.directory}')
        self.kernel.send(b"G", b"LATE=yes")
        self.check('System.getenv("LATE") + System.getProperty("LATE")', 'yesyes')

    def test_environment_of_children(self):
        self.check('var b = new ProcessBuilder("sh", "-c", "echo $V"); b.environment();\n'
                   'new String(b.start().getInputStream().readAllBytes()).trim()',
                   'child', env={"V": "child"})

    def test_interrupt(self):
        self.check('String kept = "kept";')
        for code in ('System.out.println("go"); Thread.sleep(60000);',
                     'System.out.println("go"); long n = 0; while (true) n++;'):
            answer = self.interrupt_when(code, "go")
            self.assertEqual([e["name"] for e in answer.errors], ["KeyboardInterrupt"], code)
        self.check("kept", 'kept')

    def test_interrupt_between_cells(self):
        self.check("int alive = 1;")
        for _ in range(3):
            self.kernel.interrupt_between_cells()
        self.check("alive", "1")

    def test_much_output(self):
        answer = self.run_cell('for (int i = 0; i < 100000; i++) System.out.println("0123456789");')
        self.assertEqual(len(answer.out), 1100000)

    def test_exit(self):
        self.check("int gone = 1;")
        answer = self.run_cell("System.exit(3)")
        self.assertIn("Java ended with status 3", answer.stderr)
        self.assertEqual(self.error("gone")["name"], "CompileError")


if __name__ == "__main__":
    unittest.main()
