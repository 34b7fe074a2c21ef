"""The bash kernel."""
import os
import pathlib
import signal
import time
import unittest

from harness import Kernel, KernelTest


class BashTest(KernelTest):
    language = "bash"

    def check(self, code, stdout="", stderr="", **options):
        """Runs a cell that must give exactly this, and no result."""
        answer = self.run_cell(code, **options)
        self.assertEqual((answer.stdout, answer.stderr, answer.results), (stdout, stderr, []))
        return answer


class State(BashTest):
    def test_output(self):
        self.check("echo out; echo err >&2", "out\n", "err\n")

    def test_empty_cells(self):
        for code in ("", "\n\n", "   ", "# only a comment", "#!/bin/bash\n"):
            self.check(code)

    def test_variables_stay(self):
        self.check("x=5; y=(a b c); declare -A m=([k]=v)")
        self.check('echo "$x ${y[1]} ${m[k]}"', "5 b v\n")

    def test_functions_stay(self):
        self.check("greet() {\n  local name=$1\n  echo \"hello $name\"\n}")
        self.check("greet you", "hello you\n")

    def test_directory_stays(self):
        self.check("mkdir -p sub; cd sub")
        self.check("pwd", f"{self.directory}/sub\n")

    def test_exports_stay(self):
        self.check("export E=1; N=2")
        self.check("bash -c 'echo $E$N'", "1\n")

    def test_aliases(self):
        self.check("alias hi='echo aliased'\nhi now", "aliased now\n")
        self.check("hi later", "aliased later\n")

    def test_options_stay(self):
        self.check("shopt -s extglob nullglob; set -o pipefail")
        self.check("shopt extglob nullglob; false | true; echo $?",
                   "extglob        \ton\nnullglob       \ton\n1\n")

    def test_status_is_seen_by_the_next_cell(self):
        self.check("(exit 7)")
        self.check("echo $?", "7\n")
        self.check("echo $?", "0\n")

    def test_status_is_told(self):
        for code, status in (("(exit 7)", 7), ("true", 0), ("false; true", 0), ("set -e; false", 1),
                             ("if", 2), ("exit 3", 3), ("kill -9 $$", 137)):
            with self.subTest(code):
                self.assertEqual(self.run_cell(code).status, status)

    def test_nothing_of_ours_is_visible(self):
        self.check("a=1; set | grep -iE 'sandglass|token|cell'")
        self.check("declare -F; trap -p INT EXIT ERR DEBUG; jobs; history")

    def test_descriptors(self):
        self.check("ls /proc/self/fd | tr '\\n' ' '; readlink /proc/self/fd/0",
                   "0 1 2 3 /dev/null\n")

    def test_no_history(self):
        self.check("history; echo $HISTCMD >/dev/null; echo a!b \"c!d\"", "a!b c!d\n")

    def test_redirection_of_the_shell_stays(self):
        self.check("exec 5>&1 6>file; echo five >&5; echo six >&6", "five\n")
        self.check("echo more >&5; exec 6>&-; cat file", "more\nsix\n")


class Syntax(BashTest):
    def test_many_lines(self):
        self.check("for i in 1 2 3; do\n  if (( i % 2 )); then\n    echo $i\n  fi\ndone", "1\n3\n")

    def test_here_documents(self):
        self.check("v=x\ncat <<A; cat <<'B'\n$v\nA\n$v\nB\ncat <<-C\n\ttabbed\n\tC\n",
                   "x\n$v\ntabbed\n")

    def test_case_and_line_continuation(self):
        self.check("case abc in\n a*) echo yes ;;\nesac\necho one \\\n two", "yes\none two\n")

    def test_no_newline_at_the_end(self):
        self.check("printf x", "x")

    def syntax_error(self, code, value):
        answer = self.run_cell(code)
        self.assertEqual(len(answer.results), 1)
        error, = answer.errors
        self.assertEqual(error["name"], "SyntaxError")
        self.assertIn(value, error["value"])
        self.assertIn(value, error["traceback"])
        self.assertNotIn("/proc", error["traceback"])
        self.assertIn(value, answer.stderr)
        self.check("echo alive $x", "alive 1\n")

    def test_syntax_errors(self):
        self.check("x=1")
        self.syntax_error("echo a\necho )", "line 2: syntax error near unexpected token `)'")
        self.syntax_error("if true; then", "syntax error: unexpected end of file")
        self.syntax_error("echo 'open", "unexpected EOF while looking for matching")
        self.syntax_error("echo $(", "unexpected EOF")
        self.syntax_error("done", "syntax error near unexpected token `done'")
        self.syntax_error("f() {", "unexpected end of file")

    def test_open_here_document(self):
        answer = self.run_cell("cat <<EOF\ntext")
        self.assertEqual((answer.stdout, answer.results), ("text\n", []))
        self.assertIn("delimited by end-of-file", answer.stderr)

    def test_failure_is_no_error(self):
        answer = self.run_cell("nosuchcommand; ls /nonexistent; false")
        self.assertEqual(answer.results, [])
        self.assertIn("nosuchcommand: command not found", answer.stderr)
        for status in (1, 2):
            self.check(f"(exit {status})")

    def test_return_ends_the_cell(self):
        self.check("echo a; return 4; echo b", "a\n")
        self.check("echo $?", "4\n")

    def test_break_outside_a_loop(self):
        self.assertIn("only meaningful", self.run_cell("break; continue").stderr)
        self.check("echo alive", "alive\n")

    def test_code_in_pieces(self):
        self.check("echo 'żółw 🐢'; echo end", "żółw 🐢\nend\n", pieces=20)

    def test_large_cell(self):
        lines = "".join(f"a{i}={i}\n" for i in range(60000))
        self.check(lines + "echo $a59999", "59999\n", pieces=10)

    def test_invalid_utf8(self):
        answer = self.run_cell(b"printf '\\xff'; echo \xff\xfe")
        self.assertEqual((answer.out, answer.results), (b"\xff\xff\xfe\n", []))


class Modes(BashTest):
    def test_errexit(self):
        self.check("set -e; true; x=1")
        self.check("echo $x", "1\n")
        answer = self.run_cell("echo before; false; echo after")
        self.assertEqual((answer.stdout, answer.results), ("before\n", []))
        self.assertIn("bash ended with status 1", answer.stderr)
        self.check("echo \"new ${x-without}\"", "new without\n")

    def test_errexit_and_a_status_that_it_allows(self):
        self.check("set -e; ! true")
        self.check("echo $?; trap 'echo trapped' ERR; ! true", "1\n")
        self.check("echo $?", "1\n")

    def test_nounset_ends_the_cell_only(self):
        answer = self.run_cell("set -u; x=1; echo $unset; echo no")
        self.assertEqual((answer.stdout, answer.results), ("", []))
        self.assertIn("unset: unbound variable", answer.stderr)
        self.check("echo $? $x", "1 1\n")

    def test_expansion_errors_end_the_cell_only(self):
        for code, text in (("echo ${q:?must be set}; echo no", "must be set"),
                           ("echo $((1/0)); echo no", "division by 0")):
            answer = self.run_cell(code)
            self.assertEqual((answer.stdout, answer.results), ("", []))
            self.assertIn(text, answer.stderr)

    def test_xtrace_shows_the_cell_and_nothing_else(self):
        self.check("set -x; true", "", "++ true\n")
        self.check("echo a", "a\n", "++ echo a\n")
        self.check("set +x", "", "++ set +x\n")
        self.check("echo b", "b\n")

    def test_prompts_are_never_shown(self):
        self.check("PS1='$ ' PS2='> ' PROMPT_COMMAND='echo prompt' PS0=zero TMOUT=1")
        self.check("echo a", "a\n")

    def test_strict_script(self):
        self.check("set -euo pipefail\nIFS=$'\\n\\t'\nv=$(printf 'a b')\necho \"$v\"", "a b\n")
        self.check("echo still", "still\n")

    def test_functions_that_hide_builtins(self):
        self.check("printf() { :; }; trap() { :; }; set() { :; }; alias cd='echo cd'")
        self.check("echo still", "still\n")


class End(BashTest):
    def test_exit(self):
        self.check("x=1")
        answer = self.run_cell("echo bye; exit 3; echo no")
        self.assertEqual((answer.stdout, answer.results), ("bye\n", []))
        self.assertIn("bash ended with status 3", answer.stderr)
        self.assertIn("new shell", answer.stderr)
        self.check("echo \"[$x]\" $?; pwd", f"[] 0\n{self.directory}\n")

    def test_exit_trap(self):
        answer = self.run_cell("trap 'echo cleaned' EXIT; exit")
        self.assertEqual(answer.stdout, "cleaned\n")

    def test_environment_outlives_the_shell(self):
        self.kernel.send(b"G", b"KEPT=yes")
        self.check("echo $KEPT", "yes\n")
        self.run_cell("exit")
        self.check("echo $KEPT", "yes\n")

    def test_killed(self):
        answer = self.run_cell("kill -9 $$")
        error, = answer.errors
        self.assertEqual(error["name"], "ShellKilled")
        self.assertIn("SIGKILL", error["value"])
        self.check("echo back", "back\n")

    def test_killed_between_cells(self):
        self.check("x=1")
        shell = self.process()
        os.kill(shell, signal.SIGKILL)
        answer = self.run_cell("echo never")
        self.assertEqual([e["name"] for e in answer.errors], ["ShellKilled"])
        self.check("echo back", "back\n")

    def test_exec_replaces_the_shell(self):
        answer = self.run_cell("exec echo replaced")
        self.assertEqual(answer.stdout, "replaced\n")
        self.assertIn("bash ended with status 0", answer.stderr)
        self.check("echo back", "back\n")

    def test_closed_descriptors(self):
        self.run_cell("exec 0<&- 1>&- 2>&-")
        self.check("echo unseen")
        self.run_cell("exit")
        self.check("echo back", "back\n")

    def test_socket_closed(self):
        self.check("x=1")
        shell = self.process()
        kernel, self.kernel = self.kernel, self.new_kernel()
        self.assertEqual(kernel.close(), 0)
        deadline = time.monotonic() + 10  # it hears of it when the kernel is gone
        while os.path.exists(f"/proc/{shell}/exe") and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertFalse(os.path.exists(f"/proc/{shell}/exe"))

    def test_socket_closed_while_a_cell_runs(self):
        kernel = self.new_kernel()
        kernel.start("echo go; while :; do :; done")
        kernel.finish(until=lambda a: "go" in a.stdout)
        self.assertEqual(kernel.close(), 0)


class Input(BashTest):
    def test_standard_input_is_empty(self):
        self.check("cat; read x; echo $?; python3 -c 'import sys; print(repr(sys.stdin.read()))'",
                   "1\n''\n")

    def test_programs_do_not_eat_the_cell(self):
        self.check("cat\necho after\nbash\necho end", "after\nend\n")

    def test_pipes_and_redirections(self):
        self.check("printf 'b\\na\\n' | sort; read x <<<in; echo $x", "a\nb\nin\n")
        self.check("while read y; do echo \"<$y>\"; done < <(echo p)", "<p>\n")


class Environment(BashTest):
    def test_for_one_cell(self):
        self.check("echo $V; bash -c 'echo $V'", "1\n1\n", env={"V": "1"})
        self.check("echo ${V-gone}", "gone\n")

    def test_is_put_back(self):
        self.check("export V=old; W=local")
        self.check("echo $V $W; V=changed", "new too\n", env={"V": "new", "W": "too"})
        self.check("echo $V $W; bash -c 'echo $V$W'", "old local\nold\n")

    def test_is_put_back_after_an_interrupt(self):
        self.kernel.start("echo go; sleep 60", {"V": "1"})
        self.kernel.finish(until=lambda a: "go" in a.stdout)
        self.kernel.interrupt_until_end()
        self.check("echo ${V-gone}", "gone\n")

    def test_any_value(self):
        value = "a 'b' \"c\" $d `e` \\ \n\t! é 🐢 *"
        self.check('printf %s "$V"', value, env={"V": value})

    def test_long_value(self):
        value = "x" * 100000
        self.check("echo ${#V}", "100000\n", env={"V": value})

    def test_names_that_are_no_variables(self):
        self.check("echo ok", "ok\n", env={"A-B": "1", "1": "2", "x y": "3"})

    def test_given_at_the_start(self):
        kernel = self.new_kernel(environment={"FIRST": "a b"})
        self.assertEqual(kernel.run("echo $FIRST").stdout, "a b\n")
        kernel.send(b"G", b"SECOND=c'd")
        kernel.send(b"D", b"/usr/bin")
        self.assertEqual(kernel.run("bash -c 'echo $SECOND'; pwd").stdout, "c'd\n/usr/bin\n")
        kernel.close()

    def test_directory_that_is_not_there(self):
        path = os.path.join(self.directory, "made", "for me")
        kernel = self.new_kernel(directory=path)
        self.assertEqual(kernel.run("pwd").stdout, path + "\n")
        kernel.close()
        kernel = self.new_kernel(directory="/proc/none")
        self.assertEqual(kernel.run("pwd").stdout, "/tmp\n")
        kernel.close()

    def test_startup_file(self):
        home = os.path.join(self.directory, "home")
        os.makedirs(home, exist_ok=True)
        with open(os.path.join(home, ".bashrc"), "w") as file:
            file.write("echo noise; echo noise >&2; PS1='prompt '; export RC=read\n")
        kernel = self.new_kernel(environment={"HOME": home})
        answer = kernel.run("echo $RC")
        self.assertEqual((answer.stdout, answer.stderr), ("read\n", ""))
        kernel.close()


class Jobs(BashTest):
    def test_background_jobs_live_on(self):
        self.check("(sleep 0.3; echo late > late.txt) & echo started", "started\n")
        self.check("jobs -r | wc -l; wait; cat late.txt", "1\nlate\n")

    def test_cell_ends_while_a_job_holds_its_output(self):
        begin = time.monotonic()
        self.check("sleep 30 & disown; (sleep 30 &) ; echo done", "done\n")
        self.assertLess(time.monotonic() - begin, 20)

    def test_job_survives_an_interrupt(self):
        # Until the job has come to exec, bash has not made it ignore the signal.
        self.check("sleep 30 & pid=$!; until [[ $(</proc/$pid/comm) = sleep ]]; do :; done")
        self.interrupt_when("echo go; sleep 60", "go")
        self.check("kill -0 $pid && echo alive; kill $pid", "alive\n")

    def test_output_between_cells(self):
        self.check("(sleep 0.2; echo late) &")
        answer = self.run_cell("sleep 0.5; echo now")
        self.assertEqual(answer.stdout, "late\nnow\n")


class Interrupt(BashTest):
    def programs_run(self):
        """A child of bash that has not come to exec swallows the signal: wait a little for that."""
        shell = self.process()
        deadline = time.monotonic() + 0.2
        while time.monotonic() < deadline:
            with open(f"/proc/{shell}/task/{shell}/children") as file:
                children = file.read().split()
            try:
                names = [pathlib.Path(f"/proc/{pid}/comm").read_text() for pid in children]
            except FileNotFoundError:
                continue
            if "bash\n" not in names:
                return

    def interrupted(self, code):
        self.check("x=kept")
        answer = self.interrupt_when(code, "go", self.programs_run)
        self.assertEqual([e["name"] for e in answer.errors], ["KeyboardInterrupt"])
        self.assertNotIn("after", answer.stdout)
        self.check("echo $x $?", "kept 130\n")

    def test_command(self):
        self.interrupted("echo go; sleep 60; echo after")

    def test_loop_of_builtins(self):
        self.interrupted("echo go; while :; do :; done; echo after")

    def test_loop_of_commands(self):
        self.interrupted("echo go; while true; do sleep 0.01; done; echo after")

    def test_function(self):
        self.interrupted("f() { sleep 60; echo after; }; echo go; f; echo after")

    def test_pipeline(self):
        self.interrupted("echo go; sleep 60 | cat; echo after")

    def test_subshell_and_substitution(self):
        self.interrupted("echo go; v=$( (sleep 60; echo after) ); echo after")

    def test_program_with_its_own_handler(self):
        # Python that is interrupted while it starts ends with a status, as if nothing had been.
        self.interrupted("python3 -uc 'import time; print(\"go\"); time.sleep(60)'; echo after")

    def test_program_that_swallows_the_first(self):
        self.check("x=kept")
        answer = self.interrupt_when(
            "bash -c 'n=0; trap \"((++n>1)) && exit 1\" INT; echo go; while :; do sleep 0.1; done'",
            "go")
        self.assertEqual([e["name"] for e in answer.errors], ["KeyboardInterrupt"])
        self.check("echo $x", "kept\n")

    def test_wait(self):
        self.interrupted("sleep 60 & echo go; wait; echo after")

    def test_several_at_once(self):
        self.check("x=1")
        for _ in range(8):
            self.kernel.start("echo go; sleep 60")
            answer = self.kernel.finish(until=lambda a: "go" in a.stdout)
            if answer.finished is None:  # one of the cell before may have come late
                self.kernel.interrupt()
                self.kernel.interrupt()
                answer = self.kernel.interrupt_until_end()
            self.assertEqual([e["name"] for e in answer.errors], ["KeyboardInterrupt"])
        self.check("echo $x", "1\n")

    def test_between_cells(self):
        self.check("x=1")
        for _ in range(20):
            self.kernel.interrupt()
            self.kernel.interrupt_between_cells()
            self.check("echo $x", "1\n")

    def test_at_any_moment(self):
        """Whenever it comes, the cell ends, one way or the other, and the shell is there."""
        self.check("x=1")
        for i in range(60):
            self.kernel.start("for ((i = 0; i < 500; i++)); do :; done")
            time.sleep(i / 20000)
            self.kernel.interrupt_until_end()
            answer = self.run_cell("echo $x")
            if answer.errors:  # it came in between, when the cell had been sent
                self.assertEqual(answer.errors[0]["name"], "KeyboardInterrupt")
            else:
                self.assertEqual(answer.stdout, "1\n")


class Output(BashTest):
    def test_forged_end(self):
        """Nothing that a cell prints ends it."""
        self.check("echo 'F\\0\\0'; printf 'F\\1\\0\\0\\0'; sleep 0.1; echo end",
                   "F\\0\\0\nF\x01\0\0\0end\n")

    def test_much_output(self):
        answer = self.run_cell("head -c 20000000 /dev/zero | tr '\\0' x; echo; echo done >&2")
        self.assertEqual((len(answer.out), answer.stderr), (20000001, "done\n"))

    def test_order_with_the_note(self):
        answer = self.run_cell("echo one >&2; exit 1")
        self.assertEqual(answer.stderr.splitlines()[0], "one")

    def test_two_kernels_are_apart(self):
        other = Kernel("bash")
        other.run("x=other")
        self.check("x=mine")
        self.assertEqual(other.run("echo $x").stdout, "other\n")
        self.check("echo $x", "mine\n")
        other.close()


if __name__ == "__main__":
    unittest.main()
