"""bash: an interactive shell that reads its commands from a pipe, without a terminal.

Interactive, because only then an interrupt or an unset variable under `set -u` ends what is running
and not the shell. It never sees a cell on the pipe, where an open quote would swallow what comes
after: the cell is a file, and the pipe has a line that sources it and reports, and one that reports
again, for when something has ended the first line. Reports go through a pipe that cells do not
have, with a secret token. Files and pipe are reached through /proc/<our pid>/fd, so that the
shell's programs inherit nothing.

SIGINT must not come while the shell reads a line, which it would drop half-way, nor while it
changes what it does at SIGINT, which would end it. So it is ignored between cells, and the shell
reports that a cell begins: it is sent after that only.

Assignments in front of the source command are what makes the variables of one cell go away after
it; PS1 and the like are among them, because the shell would prompt to standard error. (`builtin .`
would not do that, and `builtin exec` keeps nothing.)

`set -e` would end the shell when a cell ends with a status that is not 0, even one that is allowed,
such as that of `[ -e x ] && rm x`: sourcing is a command of its own. So it is switched off when the
file has been read to its end, by a trap, and on again in front of the next cell.
"""
import os
import re

from .child import Child, describe_end, find_program, write_all

IDENTIFIER = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*\Z")
QUIET = b"PS0= PS1= PS2= PROMPT_COMMAND= TMOUT="
OUT, ERR = 60, 61  # where the shell finds its streams while its start-up files run
SETUP = (b"PS0= PS1= PS2= PROMPT_COMMAND=; \\builtin unset MAILCHECK TMOUT; "
         b"\\builtin set +o history +H +m; \\builtin history -c; \\builtin trap '' INT; "
         b"\\exec >&%d 2>&%d %d>&- %d>&-" % (OUT, ERR, OUT, ERR))
PARSE_FAILED = (1, 2)  # the status of a cell that bash could not parse
REPORT_AGAIN = 0.1  # an interrupt can swallow the line that reports


def own_path(fd):
    return b"/proc/%d/fd/%d" % (os.getpid(), fd)


def rewrite(fd, data):
    os.ftruncate(fd, 0)
    os.pwrite(fd, data, 0)


def quote(value):
    """As one word on one line."""
    return b"$'" + b"".join(
        bytes((c,)) if c in b" /.,:=+-_@%" or chr(c).isalnum() and c < 128 else b"\\%03o" % c
        for c in value) + b"'"


class Interpreter:
    def __init__(self, bridge, _language):
        self.bridge = bridge
        self.program = find_program("bash")
        self.reports, writer = os.pipe()
        self.reports_path = own_path(writer)
        self.cell = os.memfd_create("cell")
        self.cell_path = own_path(self.cell)
        self.report = os.memfd_create("report")
        self.report_path = own_path(self.report)
        self.shell = None
        self.commands = -1
        self.status = 0  # of the last cell, which the next finds in $?
        self.ended = 0  # the status of the last shell that ended
        self.modes = set()  # `set -e`, `-x` and `-v` are off between cells

    # ---- shell ---------------------------------------------------------------------------------

    def start(self):
        reader, self.commands = os.pipe()
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            self.shell = Child(self.bridge, [self.program, "--noediting", "-i"],
                               ((1, OUT), (2, ERR), (null, 1), (null, 2), (reader, 0)))
        finally:
            os.close(reader)
            os.close(null)
        self.shell.watch(self.reports)
        self.token = os.urandom(12).hex().encode()
        self.pending = b""
        self.status = 0
        self.modes = set()
        rewrite(self.report, self.end_report())
        self.feed(SETUP)

    def feed(self, line):
        write_all(self.commands, line + b"\n")

    def set(self, name, value):
        if self.shell and IDENTIFIER.match(name):
            self.feed(b"\\builtin export %s=%s" % (name, quote(value)))

    def chdir(self, path):
        if self.shell:
            self.feed(b"\\builtin cd -- " + quote(path))

    def on_end(self):
        status = self.shell.reap()
        self.ended = status if status >= 0 else 128 - status
        os.close(self.commands)
        self.shell = None
        text = (f"bash {describe_end(status)}: the next cell gets a new shell, without the "
                "variables of this one")
        if status < 0:
            self.bridge.error("ShellKilled", text)
        else:
            self.bridge.note(text)

    def close(self):
        if self.shell:
            os.close(self.commands)

    # ---- what the shell runs -------------------------------------------------------------------

    def begin_line(self, variables):
        assignments = b" ".join(b"%s=%s" % (name, quote(value)) for name, value in variables
                                if IDENTIFIER.match(name))
        return (b"\\builtin trap - INT; \\builtin trap '%s' RETURN; "
                b"\\builtin printf '%s begin\\n' >%s; "
                b"%s %s \\. %s </dev/null; { \\. %s; } 2>/dev/null"
                % (self.return_trap(), self.token, self.reports_path, QUIET, assignments,
                   self.cell_path, self.report_path))

    def return_trap(self):
        return (b"{ [[ $- != *e* || ${#BASH_SOURCE[@]} -gt 0 ]] || "
                b"{ \\builtin printf \"%s errexit\\n\" >%s; \\builtin set +e; }; } 2>/dev/null"
                % (self.token, self.reports_path))

    def end_report(self):
        """SIGINT is ignored before it is said that the cell is over: eval takes $? first."""
        return (b"{ \\builtin eval \"\\\\builtin trap '' INT; "
                b"\\\\builtin printf '%%s\\n' '%s end $? $-' >%s; "
                b"\\\\builtin trap - RETURN; \\\\builtin set +xv\"; } 2>/dev/null"
                % (self.token, self.reports_path))

    def preamble(self):
        """In front of the cell's first line: modes and $? as the cell before left them. A failure
        in a list with && offends neither `set -e` nor a trap."""
        if not self.modes and not self.status:
            return b""
        return b"{ set -%sh; . /dev/fd/0 <<<'return %d' && :; } 2>/dev/null; " % (
            b"".join(self.modes), self.status)

    # ---- cells ---------------------------------------------------------------------------------

    def run(self, code, variables):
        if self.shell is None:
            self.start()
        rewrite(self.cell, self.preamble() + code)
        self.modes.clear()
        self.feed(self.begin_line(variables))
        self.feed_report()
        if not self.wait():
            return self.ended
        if self.bridge.interrupts.count:
            self.bridge.interrupted()
        elif self.status in PARSE_FAILED:
            self.explain_syntax(code)
        return self.status

    def feed_report(self):
        """A line without quotes or braces: if an interrupt has swallowed its beginning, the rest of
        it must not swallow the next."""
        self.feed(b"\\. " + self.report_path)

    def wait(self):
        """Until the cell is over. Returns whether the shell is still there."""
        begun = False
        interrupts = self.bridge.interrupts
        while True:
            ready = self.shell.wait(REPORT_AGAIN if begun and interrupts.count else None)
            if self.reports in ready:
                for what, *details in self.read_reports():
                    if what == b"begin":
                        begun = True
                        if interrupts.count:
                            self.shell.interrupt()
                    elif begun and what == b"errexit":
                        self.modes.add(b"e")
                    elif begun and what == b"end":  # or it is the second one of the cell before
                        self.on_cell_end(*details)
                        return True
            elif self.shell.pidfd in ready:
                self.on_end()
                return False
            elif interrupts.fd in ready:
                interrupts.seen()
                if begun:
                    self.shell.interrupt()
            elif not ready:
                self.feed(b"")
                self.feed_report()

    def read_reports(self):
        *lines, self.pending = (self.pending + os.read(self.reports, 4096)).split(b"\n")
        for line in lines:
            token, *words = line.split(b" ")
            if token == self.token and words:
                yield words

    def on_cell_end(self, status, flags):
        self.status = int(status)
        self.modes.update(mode for mode in (b"x", b"v") if mode in flags)

    def explain_syntax(self, code):
        """An error result, if the cell cannot be parsed. Standard error has what bash said."""
        import subprocess  # takes longer than the start of a shell
        check = subprocess.run([self.program, "-O", "extglob", "-n"], input=code, check=False,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if check.returncode == 0:
            return
        lines = [re.sub(r"^\S*bash: ", "", line)
                 for line in check.stderr.decode(errors="replace").splitlines()]
        self.bridge.error("SyntaxError", lines[0] if lines else "", "\n".join(lines))
