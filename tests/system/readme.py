"""README.md from top to bottom, as its reader would try it: the steps behind readme.sh.

Blocks of `console` are typed into one shell on a terminal, and what comes must be what is printed there: `...` stands for
anything, and ids, ports and keys for any other. The blocks of JavaScript and C are run as the programs that they are.
What installs or builds (`sh`) is not done again, but must be there."""
import os
import pathlib
import pty
import re
import select
import signal
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
PATIENCE_S = 60
PROMPT = re.compile(r"\x02(\d+)\x03")
COLOUR = re.compile(r"\x1b\[[\d;]*m")
number = 0


def check(what, ok, detail=""):
    global number
    number += 1
    if not ok and detail != "":
        print("\n".join(f"# {line}" for line in str(detail)[:3000].splitlines()))
    print(f"{'ok' if ok else 'not ok'} {number} - {what}", flush=True)


def blocks(text):
    """(language, lines) of each block, in order."""
    return [(found[1], found[2].splitlines()) for found in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.M | re.S)]


def commands(lines):
    """(command, lines that must come) of a block of a console."""
    found = []
    for line in lines:
        if re.match(r"[#$] ", line):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


# What is different each time, and what may be there: the rest of a line, ids, the server's address, how long ago.
VOLATILE = re.compile(r"(\.\.\.|\b(?=[a-z]*\d)[a-z0-9]{20}\b|127\.0\.0\.1:\d+|\bnow\b)")
ANY = {"...": ".*", "now": r"(?:now|\d+ s ago)"}


def one_spaced(text):
    return re.sub(" +", " ", text)


def alike(lines, came):
    """Whether what came is what README says; columns may have other widths."""
    parts = VOLATILE.split(one_spaced("\n".join(lines)))
    pattern = "".join(ANY.get(part, r"[\w.:]+") if i % 2 else re.escape(part) for i, part in enumerate(parts))
    return re.fullmatch(pattern, one_spaced(came.strip("\n")), re.S)


class Terminal:
    """A shell on a terminal."""

    def __init__(self, place, environment):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(place)
            os.execvpe("bash", ["bash", "--noprofile", "--norc", "--noediting", "-i"], environment)
        self.type("stty -echo; PS1=$'\\x02$?\\x03' PS2=")

    def type(self, command, until=PROMPT):
        """(status, what came) of a command, which is one line; with another end than a prompt, (None, what came)."""
        os.write(self.fd, command.encode() + b"\n")
        came, deadline = "", time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if select.select([self.fd], [], [], 1)[0]:
                came += os.read(self.fd, 65536).decode(errors="replace")
                came = COLOUR.sub("", came.replace("\r", ""))
            found = until.search(came)
            if found:
                return (int(found[1]) if until is PROMPT else None), came[:found.start() if until is PROMPT else None]
        raise TimeoutError(f"'{command}' has no end after {PATIENCE_S} s: {came[-1000:]}")

    def close(self):
        os.kill(self.pid, signal.SIGHUP)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def serve(terminal, lines):
    """The server's own terminal; gives what it has to be given to others: the lines of `export`."""
    command, wanted = commands(lines)[0]
    _, came = terminal.type(command, re.compile(r"E2B_API_KEY=e2b_\w+\n"))
    shown = came[came.index("Serving on"):]
    check(f"# {command}", alike(wanted, shown), came)
    exports = [line for line in shown.splitlines() if line.startswith("  export")]
    return "; ".join(exports)


def console(terminal, lines):
    for command, wanted in commands(lines):
        if " -it " in command:
            _, came = terminal.type(command, re.compile(r"\$ $"))
            status, _ = terminal.type("exit 7")
            check(f"{command}: a shell inside, and out of it", status == 7, came)
            continue
        status, came = terminal.type(command)
        refused = any(line.startswith("sandglass: ") for line in wanted)
        check(command, bool(status) == refused and (alike(wanted, came) if wanted else "sandglass: " not in came),
              f"status {status}, and this came:\n{came}")


def installed(lines):
    """Targets of make, and packages of npm, which are those that the tests use."""
    made = (TOP / "Makefile").read_text(encoding="utf-8")
    used = "".join((TOP / f"tests/{name}/package.json").read_text(encoding="utf-8") for name in ("e2e", "node"))
    for words in (line.split("#")[0].split() for line in lines):
        if words[0] == "make":
            check(f"make {words[1]}: there is such a target", re.search(rf"^{words[1]}:", made, re.M))
        for package in words[2:] if words[:2] == ["npm", "install"] else ():
            check(f"{package} is what is tested", f'"{package}"' in used or f'"{package.replace("@", "-")}"' in used)


def javascript(terminal, lines, place):
    pathlib.Path(place, "example.mjs").write_text("\n".join(lines), encoding="utf-8")
    os.symlink(TOP / "build/e2e/node_modules", f"{place}/node_modules")
    node = TOP / "build/node/node_modules/node-22/bin/node"
    wanted = [found[1] for found in (re.search(r"console\.log.*// (.*)", line) for line in lines) if found]
    status, came = terminal.type(f"{node} example.mjs")
    check("the SDK's example says what is written beside it",
          status == 0 and [line for line in came.splitlines() if line] == wanted, f"{wanted}\n{came}")


def c(terminal, lines, place):
    pathlib.Path(place, "example.c").write_text(
        "#include <sandglass.h>\n#include <stdio.h>\n#include <string.h>\nint main(void)\n{\n" + "\n".join(lines) +
        "\nreturn 0;\n}\n", encoding="utf-8")
    status, came = terminal.type(f"gcc -Wall -Werror -I{TOP}/include example.c -o example -L{TOP}/build/lib -lsandglass &&"
                                 f" LD_LIBRARY_PATH={TOP}/build/lib ./example")
    check("the library's example", status == 0 and came == "5050\n", came)


def place_of(folder):
    """Somebody's folder, as those that README mounts and runs agents from."""
    os.mkdir(folder)
    pathlib.Path(folder, "Makefile").write_text("check:\n\t@echo fine >checked\n", encoding="utf-8")
    pathlib.Path(folder, "agent.mjs").write_text("", encoding="utf-8")
    for path in (folder, *map(str, pathlib.Path(folder).iterdir())):
        os.chown(path, 65534, 65534)


def main():
    program, top = sys.argv[1:]
    place = f"{top}/place"
    place_of(place)
    environment = {"PATH": f"{os.path.dirname(program)}:/usr/sbin:/usr/bin", "HOME": place, "TERM": "dumb", "API_KEY": "none",
                   "LANG": "C.UTF-8", "SANDGLASS_LISTEN": "127.0.0.1:0", "SANDGLASS_STATE": f"{top}/state"}
    server, shell = Terminal(place, environment), Terminal(place, environment)
    try:
        for language, lines in blocks((TOP / "README.md").read_text(encoding="utf-8")):
            if language == "sh":
                installed(lines)
            elif language == "js":
                javascript(shell, lines, place)
            elif language == "c":
                c(shell, lines, place)
            elif lines[0] == "# sandglass serve":
                shell.type(serve(server, lines))
            else:
                console(shell, lines)
        check("what was made inside is there", os.path.exists(f"{place}/checked"))
        server.type("\x03", re.compile(r"the server has ended"))
        check("Ctrl-C ends the server", True)
    finally:
        shell.close()
        server.close()


main()
