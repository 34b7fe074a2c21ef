"""libsandglass for host scripts: sandboxes that live on, and their files."""
import ctypes as c
import os

import program

u8p, u64, u32, u16 = c.c_void_p, c.c_uint64, c.c_uint32, c.c_uint16


class Error(c.Structure):
    _fields_ = [("kind", c.c_int), ("code", c.c_int), ("message", c.c_char * 488)]


class Limits(c.Structure):
    _fields_ = [
        ("memory_bytes", u64),
        ("disk_bytes", u64),
        ("disk_inodes", u64),
        ("cpus_milli", u32),
        ("pids", u32),
    ]


class Options(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("limits", Limits),
        ("network", c.c_int),
        ("mounts", c.c_void_p),
        ("n_mounts", c.c_size_t),
        ("mount_owner", c.c_char_p),
        ("policy", c.c_void_p),
        ("approved", c.c_bool),
        ("hostname", c.c_char_p),
    ]


class Exec(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("argv", c.c_void_p),
        ("env", c.c_void_p),
        ("cwd", c.c_char_p),
        ("user", c.c_char_p),
        ("timeout_ms", u64),
        ("output_limit", u64),
        ("stdin_data", c.c_void_p),
        ("stdin_len", c.c_size_t),
        ("stdin_fd", c.c_int),
        ("tty", c.c_bool),
        ("tty_rows", u16),
        ("tty_cols", u16),
        ("on_output", c.c_void_p),
        ("on_output_arg", c.c_void_p),
        ("interrupt_fd", c.c_int),
        ("cell", c.c_bool),
        ("on_result", c.c_void_p),
        ("on_result_arg", c.c_void_p),
    ]


class Usage(c.Structure):
    _fields_ = [
        (name, u64)
        for name in (
            "cpu_user_us",
            "cpu_system_us",
            "memory_peak_bytes",
            "disk_bytes",
            "stdout_bytes",
            "stderr_bytes",
        )
    ]


class Result(c.Structure):
    _fields_ = [
        ("stdout_data", u8p),
        ("stderr_data", u8p),
        ("stdout_len", c.c_size_t),
        ("stderr_len", c.c_size_t),
        ("exit_code", c.c_int),
        ("signal", c.c_int),
        ("duration_us", u64),
        ("status", c.c_int),
        ("limit", c.c_int),
        ("error_message", c.c_char * 256),
        ("usage", Usage),
        ("limits_applied", Limits),
        ("timeout_ms", u64),
        ("output_limit", u64),
    ]


class SandglassError(Exception):
    def __init__(self, e):
        super().__init__(e.message.decode(errors="replace"))
        self.code = e.code


class Done:
    """What is kept of a result."""

    def __init__(self, r):
        self.out = c.string_at(r.stdout_data, r.stdout_len).decode(errors="replace")
        self.err = c.string_at(r.stderr_data, r.stderr_len).decode(errors="replace")
        self.status, self.limit = r.exit_code, r.limit
        self.message = r.error_message.decode(errors="replace")


class Engine:
    def __init__(self, max_sandboxes=4, library=None):
        self.lib = c.CDLL(library or program.LIBRARY)
        self.handle = c.c_void_p()
        self.call("sg_engine_open", u32(max_sandboxes), c.byref(self.handle))

    def call(self, name, *args):
        e = Error()
        if getattr(self.lib, name)(*args, c.byref(e)) < 0:
            raise SandglassError(e)

    def sandbox(self, **limits):
        return Sandbox(self, **limits)

    def close(self):
        self.lib.sg_engine_close(self.handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def strings(items):
    return (c.c_char_p * (len(items) + 1))(
        *[s if isinstance(s, bytes) else s.encode() for s in items], None
    )


class Sandbox:
    def __init__(self, engine, **limits):
        self.engine, self.handle = engine, c.c_void_p()
        options = Options(size=c.sizeof(Options), limits=Limits(**limits))
        engine.call("sg_sandbox_open", engine.handle, c.byref(options), c.byref(self.handle))

    def exec(self, *argv, user="user", env=(), cwd=None, timeout_s=30):
        args, vars_ = strings(argv), strings(env)
        x = Exec(
            size=c.sizeof(Exec),
            argv=c.cast(args, c.c_void_p),
            env=c.cast(vars_, c.c_void_p),
            cwd=cwd and cwd.encode(),
            user=user.encode(),
            timeout_ms=timeout_s * 1000,
            stdin_fd=-1,
            interrupt_fd=-1,
        )
        r = Result()
        self.engine.call("sg_sandbox_exec", self.handle, c.byref(x), c.byref(r))
        done = Done(r)
        self.engine.lib.sg_result_free(c.byref(r))
        return done

    def write(self, path, data, user="user"):
        self.engine.call(
            "sg_sandbox_write_file",
            self.handle,
            user.encode(),
            os.fsencode(path),
            data,
            c.c_size_t(len(data)),
        )

    def read(self, path, user="user", most=1 << 20):
        data, n = c.c_void_p(), c.c_size_t()
        self.engine.call(
            "sg_sandbox_read_file",
            self.handle,
            user.encode(),
            os.fsencode(path),
            c.c_size_t(most),
            c.byref(data),
            c.byref(n),
        )
        text = c.string_at(data, n.value)
        c.CDLL(None).free(data)
        return text

    def close(self):
        self.engine.call("sg_sandbox_close", self.handle)
