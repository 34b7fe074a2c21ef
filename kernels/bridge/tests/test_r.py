"""The R kernel."""
import base64
import os
import struct
import unittest

from harness import CellTest


class RTest(CellTest):
    language = "r"


class Cells(RTest):
    def test_value(self):
        self.check("1 + 1", "[1] 2")
        self.check('"text"', '[1] "text"')
        self.check("c(a = 1, b = 2)", "a b \n1 2 ")

    def test_no_value(self):
        for code in ("", "# comment", "x <- 1", "invisible(5)", "NULL -> y", "5;"):
            self.check(code)

    def test_state(self):
        self.check("x <- 5; f <- function(a) a * x")
        self.check("f(3)", "[1] 15")

    def test_output(self):
        self.check('cat("out\\n"); message("err")', None, "out\n", "err\n")
        self.check('print(1:3)', None, "[1] 1 2 3\n")
        self.check('system("echo child")', None, "child\n")

    def test_one_call_is_one_piece(self):
        for code, *pieces in [
                ("print(1:3)", "[1] 1 2 3\n"),
                ("print(c(a = 1, b = 2))", "a b \n1 2 \n"),
                ('print(data.frame(a = 1:2, b = c("x", "y")))', "  a b\n1 1 x\n2 2 y\n"),
                ('x <- list(a = 1); print(x); cat("n =", 3, "\n")', "$a\n[1] 1\n\n", "n = 3 \n"),
                ('cat("a", "b", sep = "\n"); cat("c", sep = "\n"); cat("d\n")', "a\nb\n", "c\n", "d\n"),
                ('f <- function() { cat("inner\n"); 5 }; print(f())', "inner\n", "[1] 5\n"),
                ("print(invisible(7))", "[1] 7\n"),
                ('print.odd <- function(x, ...) { cat("odd", "\n"); print(unclass(x)); invisible(x) }\n'
                 'print(structure(1, class = "odd"))', "odd \n[1] 1\n")]:
            answer = self.run_cell(code)
            self.assertEqual([p.decode() for p in answer.pieces], pieces, code)
            self.assertEqual(answer.results, [], code)

    def test_a_piece_that_ends_early(self):
        answer = self.run_cell('print.bad <- function(x, ...) { cat("half "); stop("no") }\n'
                               'print(structure(1, class = "bad"))')
        self.assertEqual([answer.stdout, answer.errors[0]["value"]], ["half ", "no"])
        self.check('cat("fine\n")', None, "fine\n")
        self.check('capture.output(print(1))', '[1] "[1] 1"')
        answer = self.run_cell("print(stop('first'))")
        self.assertEqual([answer.stdout, answer.errors[0]["value"]], ["", "first"])

    def test_every_visible_value(self):
        answer = self.run_cell("1\nx <- 2\n3")
        self.assertEqual([(k, f["text"]) for k, f in answer.results],
                         [("d", "[1] 1"), ("m", "[1] 3")])

    def test_order(self):
        self.check('for (i in 1:3) { cat("a\\n"); flush(stdout()) }; 1', "[1] 1", "a\na\na\n")

    def test_output_after_a_result(self):
        for _ in range(20):
            self.kernel.start('"value"\ncat("after\\n")\nSys.sleep(0.01)')
            first = self.kernel.finish(until=lambda a: a.out or a.results)
            self.assertEqual((len(first.results), first.stdout), (1, ""))
            self.kernel.finish()

    def test_unicode(self):
        self.check('cat("żółw 🐢\\n"); nchar("żółw")', "[1] 4", "żółw 🐢\n")

    def test_warnings(self):
        self.check('log(-1)', "[1] NaN", "", "Warning in log(-1) : NaNs produced\n")
        self.check('warning("careful")', None, "", "Warning: careful\n")
        self.check('suppressWarnings(as.numeric("x"))', "[1] NA")

    def test_no_input(self):
        self.check('readline("? ")', '[1] ""', "? \n")
        self.check('con <- file("stdin"); n <- length(readLines(con)); close(con); n', "[1] 0")

    def test_s4(self):
        self.check('setClass("P", representation(n = "numeric"))\n'
                   'setMethod("show", "P", function(object) cat("P!\\n"))')
        self.check('new("P", n = 1)', "P!")

    def test_long_cell(self):
        lines = "".join(f"a{i} <- {i}\n" for i in range(5000))
        self.check(lines + "a4999", "[1] 4999", pieces=3)

    def test_nothing_of_ours_is_visible(self):
        self.check("rm(list = ls()); ls(all.names = TRUE)", "character(0)")

    def test_sink_is_undone(self):
        self.check('sink(tempfile()); cat("hidden\\n")')
        self.check('cat("seen\\n")', None, "seen\n")


class Frames(RTest):
    def test_data_frame(self):
        answer = self.run_cell('data.frame(n = c(1.5, NA), s = c("a<b", "q\\"q"), l = c(TRUE, NA), '
                               'd = as.Date(c("2024-01-02", NA)), f = factor(c("x", "y")))')
        (kind, fields), = answer.results
        self.assertEqual(kind, "m")
        self.assertIn("1 1.5", fields["text"])
        self.assertIn("<td>a&lt;b</td>", fields["html"])
        self.assertEqual(fields["data"], {"n": [1.5, None], "s": ["a<b", 'q"q'], "l": [True, None],
                                          "d": ["2024-01-02", None], "f": ["x", "y"]})

    def test_large_and_empty(self):
        fields = self.run_cell("data.frame(i = 1:1000)").results[0][1]
        self.assertEqual(fields["data"], {"i": list(range(1, 1001))})
        self.assertEqual(fields["html"].count("<tr>"), 62)
        self.assertEqual(self.run_cell("data.frame()").text, "data frame with 0 columns and 0 rows")
        fields = self.run_cell("data.frame(a = numeric())").results[0][1]
        self.assertEqual(fields["data"], {"a": []})


class Plots(RTest):
    def plots(self, code):
        answer = self.run_cell(code)
        self.assertEqual(answer.errors, [])
        found = [base64.b64decode(f["png"]) for _, f in answer.results if "png" in f]
        for png in found:
            self.assertTrue(png.startswith(b"\x89PNG"))
        return found

    def test_plot(self):
        self.assertEqual(len(self.plots("plot(1:3); lines(3:1)")), 1)
        self.assertEqual(self.plots("x <- 1"), [])

    def test_several(self):
        self.assertEqual(len(self.plots("plot(1); hist(c(1, 2, 2)); barplot(1:3)")), 3)

    def test_own_device_is_left_alone(self):
        path = os.path.join(self.directory, "own.pdf")
        self.assertEqual(self.plots(f'pdf("{path}"); plot(1)'), [])
        self.assertEqual(self.plots("lines(1:2); invisible(dev.off())"), [])
        with open(path, "rb") as file:
            self.assertTrue(file.read().startswith(b"%PDF"))

    def test_size(self):
        png, = self.plots("options(repr.plot.width = 4, repr.plot.height = 3)\n"
                          "options(repr.plot.res = 100)\n"
                          "plot.new()")
        self.assertEqual(struct.unpack_from(">II", png, 16), (400, 300))


class Errors(RTest):
    def test_error(self):
        error = self.error('f <- function(n) stop("bad ", n)\n'
                           'g <- function() f(3)\ng()')
        self.assertEqual((error["name"], error["value"]), ("Error", "bad 3"))
        self.assertEqual(error["traceback"].splitlines(), [
            "Error in f(3): bad 3", "  at line 3 of the cell", "Traceback:", "1. g()", "2. f(3)",
            '3. stop("bad ", n)'])

    def test_ends_the_cell(self):
        answer = self.run_cell('cat("a\\n")\nstop("x")\ncat("b\\n")')
        self.assertEqual((answer.stdout, len(answer.errors)), ("a\n", 1))

    def test_syntax_error(self):
        error = self.error("1\nx <- (2 + \n")
        self.assertEqual(error["name"], "SyntaxError")
        self.assertIn("unexpected end of input", error["value"])
        self.assertIn("line 1: unexpected ')'", self.error(")")["value"])

    def test_named_condition(self):
        error = self.error('stop(structure(class = c("myCondition", "error", "condition"), '
                           'list(message = "m", call = NULL)))')
        self.assertEqual((error["name"], error["value"]), ("myCondition", "m"))
        self.assertEqual(self.error("library(nosuchlibrary)")["name"], "packageNotFoundError")

    def test_error_while_printing(self):
        error = self.error('print.bad <- function(x, ...) stop("no print")\n'
                           'structure(1, class = "bad")')
        self.assertEqual(error["value"], "no print")
        self.check("1", "[1] 1")

    def test_deep_recursion(self):
        error = self.error("f <- function(n) f(n + 1); f(1)")
        self.assertRegex(error["value"], "nested too deeply|stack")
        self.check("1", "[1] 1")


class Life(RTest):
    shared = False

    def test_environment(self):
        kernel = self.new_kernel(environment={"FIRST": "ä b"})
        self.assertEqual(kernel.run('cat(Sys.getenv("FIRST"))').stdout, "ä b")
        self.assertEqual(kernel.run('cat(Sys.getenv("V"), getwd())', env={"V": "1=2"}).stdout,
                         f"1=2 {self.directory}")
        self.assertEqual(kernel.run('cat(Sys.getenv("V", "gone"))').stdout, "gone")
        kernel.send(b"G", b"LATE=yes")
        kernel.send(b"D", b"/usr")
        self.assertEqual(kernel.run('cat(Sys.getenv("LATE"), getwd())').stdout, "yes /usr")
        kernel.close()

    def test_interrupt(self):
        self.check("x <- 'kept'")
        for code in ('cat("go\\n"); repeat {}', 'cat("go\\n"); Sys.sleep(60)',
                     'cat("go\\n"); system("sleep 60"); Sys.sleep(60)'):
            answer = self.interrupt_when(code, "go")
            self.assertEqual([e["name"] for e in answer.errors], ["KeyboardInterrupt"], code)
        self.check("x", '[1] "kept"')

    def test_interrupt_while_printing(self):
        answer = self.interrupt_when(
            'print.slow <- function(x, ...) repeat {}; cat("go\\n"); structure(1, class = "slow")',
            "go")
        self.assertEqual([e["name"] for e in answer.errors], ["KeyboardInterrupt"])
        self.check("1", "[1] 1")

    def test_interrupt_between_cells(self):
        self.check("x <- 1")
        for _ in range(5):
            self.kernel.interrupt_between_cells()
        self.check("x", "[1] 1")

    def test_quit(self):
        self.check("x <- 1")
        answer = self.run_cell('cat("bye\\n"); quit(status = 4)')
        self.assertEqual((answer.stdout, answer.errors), ("bye\n", []))
        self.assertIn("R ended with status 4", answer.stderr)
        self.check('exists("x")', "[1] FALSE")

    def test_killed(self):
        answer = self.run_cell('tools::pskill(Sys.getpid(), 9); Sys.sleep(60)')
        self.assertEqual([e["name"] for e in answer.errors], ["InterpreterKilled"])
        self.check("1", "[1] 1")


if __name__ == "__main__":
    unittest.main()
