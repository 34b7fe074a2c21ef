"""Any Jupyter kernel, by its kernelspec. Speaks with it through jupyter_client.

The kernel is started here and not by jupyter_client, which would put it into a session of its own:
the agent ends a kernel by its session.
"""
import json
import os
import queue
import time

from .child import Child, describe_end, find_program
from .loop import CannotRun

FOLDERS = ("~/.local/share/jupyter/kernels", "/usr/local/share/jupyter/kernels",
           "/usr/share/jupyter/kernels")
START_SECONDS = 60
SETTLE_SECONDS = 1
# MIME types that have a field of their own.
FIELDS = {
    "text/plain": "text", "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg",
    "image/png": "png", "image/jpeg": "jpeg", "application/pdf": "pdf", "text/latex": "latex",
    "application/json": "json", "application/javascript": "javascript",
}


def folders():
    path = [os.path.join(folder, "kernels")
            for folder in os.environ.get("JUPYTER_PATH", "").split(":") if folder]
    return path + [os.path.expanduser(folder) for folder in FOLDERS]


def find_spec(name):
    for folder in folders():
        path = os.path.join(folder, name)
        try:
            with open(os.path.join(path, "kernel.json"), encoding="utf-8") as file:
                spec = json.load(file)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as e:
            raise CannotRun(f"{path}/kernel.json cannot be used: {e}") from e
        if not isinstance(spec, dict) or not isinstance(spec.get("argv"), list) or not spec["argv"]:
            raise CannotRun(f"{path}/kernel.json names no program in 'argv'")
        return path, spec
    raise CannotRun(f"there is no kernel '{name}': no such folder below {', '.join(folders())}")


class Interpreter:
    def __init__(self, bridge, language):
        if "/" in language or language.startswith("."):
            raise CannotRun(f"'{language}' is no name of a kernel")
        try:
            import jupyter_client
        except ImportError as e:
            raise CannotRun("Jupyter kernels need the Python package jupyter_client, which is not "
                            "installed for the system's Python") from e
        self.jupyter_client = jupyter_client
        self.bridge = bridge
        self.name = language
        self.folder, self.spec = find_spec(language)
        self.by_message = self.spec.get("interrupt_mode") == "message"
        self.child = None

    # ---- process -------------------------------------------------------------------------------

    def start(self):
        from jupyter_client.connect import write_connection_file
        self.connection, _ = write_connection_file()
        argv = [self.expand(a) for a in self.spec["argv"]]
        environment = dict(os.environ)
        environment.update({str(k): str(v) for k, v in self.spec.get("env", {}).items()})
        environment["JPY_PARENT_PID"] = str(os.getpid())
        # Output comes in messages; a kernel repeats on its own streams what its programs wrote.
        null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            self.child = Child(self.bridge, [self.program(argv[0]), *argv[1:]],
                               ((null, 1), (null, 2)), environment)
        finally:
            os.close(null)
        self.client = self.jupyter_client.BlockingKernelClient(connection_file=self.connection)
        self.client.load_connection_file()
        self.client.start_channels()
        self.wait_until_ready()
        client = self.client
        for channel in (client.iopub_channel, client.shell_channel, client.stdin_channel):
            self.child.watch(channel.socket.fd)

    def expand(self, argument):
        return argument.replace("{connection_file}", self.connection).replace(
            "{resource_dir}", self.folder)

    @staticmethod
    def program(name):
        if "/" in name:
            return name
        # "python" is what specs say for the Python that they were installed with.
        return find_program("python3") if name == "python" else find_program(name)

    def wait_until_ready(self):
        for _ in range(START_SECONDS * 10):
            try:
                self.client.wait_for_ready(timeout=0.1)
                return
            except RuntimeError:
                if self.child.wait(0) & {self.child.pidfd}:
                    status = self.child.reap()
                    self.forget()
                    raise CannotRun(f"the kernel '{self.name}' {describe_end(status)} "
                                    "while it was starting") from None
        self.close()
        raise CannotRun(f"the kernel '{self.name}' did not answer within {START_SECONDS} s")

    def forget(self):
        self.child = None
        self.client.stop_channels()
        try:
            os.unlink(self.connection)
        except FileNotFoundError:
            pass

    def set(self, name, value):
        """Not possible in a kernel of any language. It is in the environment of the next one."""

    def chdir(self, path):
        """As above."""

    def close(self):
        if self.child:
            self.child.kill()
            self.forget()

    # ---- cells ---------------------------------------------------------------------------------

    def run(self, code, variables):
        if self.child is None:
            self.start()
        if any(name != b"TRACEPARENT" for name, _ in variables):  # that one nobody misses
            self.bridge.note(f"the kernel '{self.name}' cannot be given variables for one cell")
        if self.bridge.interrupts.count:  # while it was starting
            self.bridge.interrupted()
            return
        # One cell at a time is sent: the one after an error is not what was queued behind it, to be dropped.
        self.id = self.client.execute(code.decode(errors="replace"), allow_stdin=True, stop_on_error=False)
        self.got_reply = self.is_idle = self.refused = False
        while self.child and not (self.got_reply and self.is_idle):
            self.step()
        if self.child and self.bridge.interrupts.count > 1:
            self.settle()

    def settle(self):
        """Of interrupts that were repeated, the last can be late, and would end the next cell. A kernel
        that has answered another request has had them all."""
        asked = self.client.kernel_info()
        deadline = time.monotonic() + SETTLE_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            try:
                message = self.client.get_shell_msg(timeout=left)
            except queue.Empty:
                return
            if message["parent_header"].get("msg_id") == asked:
                return

    def step(self):
        # A ZeroMQ descriptor tells of a change once: look first, then wait, and not for long.
        if self.take_messages():
            return
        ready = self.child.wait(0.05)
        if self.bridge.interrupts.fd in ready:
            self.bridge.interrupts.seen()
            self.interrupt()
        elif self.child.pidfd in ready and not self.take_messages():
            self.on_end()

    def take_messages(self):
        """Returns whether there were any."""
        taken = False
        for get, handle in ((self.client.get_iopub_msg, self.on_output),
                            (self.client.get_shell_msg, self.on_reply),
                            (self.client.get_stdin_msg, self.on_question)):
            while True:
                try:
                    message = get(timeout=0)
                except queue.Empty:
                    break
                taken = True
                if message["parent_header"].get("msg_id") == self.id:
                    handle(message["header"]["msg_type"], message["content"])
        return taken

    def interrupt(self):
        if self.by_message:
            message = self.client.session.msg("interrupt_request", content={})
            self.client.control_channel.send(message)
        else:
            self.child.interrupt()

    def on_output(self, kind, content):
        if kind == "stream":
            streams = self.bridge.streams
            stream = streams.stderr if content["name"] == "stderr" else streams.stdout
            stream.write(content["text"])
        elif kind in ("execute_result", "display_data"):
            fields = self.fields(content.get("data") or {})
            if fields:
                self.bridge.result("m" if kind == "execute_result" else "d", fields)
        elif kind == "error":
            if not self.refused:
                self.bridge.error(content.get("ename", "Error"), content.get("evalue", ""),
                                  "\n".join(content.get("traceback") or []))
        elif kind == "status" and content.get("execution_state") == "idle":
            self.is_idle = True

    def on_reply(self, kind, content):
        if kind == "execute_reply":
            self.got_reply = True
            for part in content.get("payload") or []:  # what `obj?` shows
                text = (part.get("data") or {}).get("text/plain")
                if text:
                    self.bridge.streams.stdout.write(text + "\n")

    def on_question(self, kind, _content):
        """The only way to refuse input that every kernel understands is to interrupt it."""
        if kind == "input_request":
            self.bridge.error("StdinNotImplementedError",
                              "reading from standard input is not possible in a cell")
            self.refused = True
            self.interrupt()

    @staticmethod
    def fields(data):
        found, extra = {}, {}
        for mime, value in data.items():
            if isinstance(value, list) and mime != "application/json":
                value = "".join(map(str, value))
            name = FIELDS.get(mime)
            if name is None:
                extra[mime] = value
            elif name == "json" or isinstance(value, str):
                found[name] = value
        if extra:
            found["extra"] = extra
        return found

    def on_end(self):
        status = self.child.reap()
        self.forget()
        self.bridge.error("KernelDied", f"the kernel '{self.name}' {describe_end(status)}: the "
                          "next cell gets a new one, without the variables of this one")
