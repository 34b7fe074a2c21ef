"""Programs that cells start by `!`, `%pip` and `%%bash`.

They inherit descriptors 1 and 2, so their output is streamed without passing through here, unless
the cell has put something else in the place of sys.stdout: then it gets what they print.
"""

import os
import re
import string
import subprocess
import sys

from . import usersite

_NAME = re.compile(r"\$(\$|[A-Za-z_]\w*)")
SHELLS = ("/bin/bash", "/bin/sh")


class Lines(list):
    """What a program printed, as lines; as one text by .n (line ends) and .s (spaces)."""

    @property
    def l(self):
        return self

    @property
    def n(self):
        return "\n".join(self)

    @property
    def s(self):
        return " ".join(self)


def expand(command, namespace):
    """`{expression}` and `$name` by their values in the cell's module. What does not evaluate
    is the shell's, and left alone."""
    if "{" in command:
        try:
            command = _format(command, namespace)
        except Exception:
            pass

    def value(found):
        name = found[1]
        if name == "$":
            return "$"
        return str(namespace[name]) if name in namespace else found[0]

    return _NAME.sub(value, command) if "$" in command else command


def _format(command, namespace):
    out = []
    for text, field, spec, conversion in string.Formatter().parse(command):
        out.append(text)
        if field is not None:
            value = eval(field, namespace)
            if conversion:
                value = {"r": repr, "s": str, "a": ascii}[conversion](value)
            out.append(format(value, spec))
    return "".join(out)


def environment(command):
    """Debian's pip refuses to install what the system does not manage. In a sandbox that is
    exactly what people want."""
    if "pip" not in command:
        return None
    extra = {
        "PIP_BREAK_SYSTEM_PACKAGES": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
    }
    return {**extra, **os.environ}


def shell_program():
    return next((path for path in SHELLS if os.path.exists(path)), "sh")


def run(arguments, text=None, env=None):
    """Runs a program to its end. Returns its exit status, or minus the signal."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    captured = sys.stdout is not sys.__stdout__
    process = subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL if text is None else subprocess.PIPE,
        stdout=subprocess.PIPE if captured else None,
        stderr=subprocess.STDOUT if captured else None,
        env=env,
    )
    try:
        printed, _ = process.communicate(None if text is None else text.encode("utf-8", "replace"))
    except BaseException:
        # An interrupt goes to the whole process group. What heeds it ends; the rest is ended.
        try:
            process.wait(1)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
            process.wait()
        raise
    finally:
        usersite.refresh()
    if captured:
        sys.stdout.write(printed.decode("utf-8", "replace"))
    return process.returncode


def system(command):
    """`!command`. Returns its exit status."""
    return run([shell_program(), "-c", command], env=environment(command))


def output(command):
    """`x = !command`: the lines it printed, those of standard error too."""
    done = subprocess.run(
        [shell_program(), "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(command),
    )
    usersite.refresh()
    return Lines(done.stdout.decode("utf-8", "replace").splitlines()), done.returncode
