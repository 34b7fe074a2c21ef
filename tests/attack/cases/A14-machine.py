# case: A14
# title: modules, kexec, reboot, time, swap, names
# users: user root
# control: seccomp
# Arguments are invalid, or say what is the case already: should a call get through, nothing
# happens.
import socket
import struct
import time

now = ctypes.create_string_buffer(struct.pack("qq", int(time.time()), 0))
name = socket.gethostname().encode()
refused("init_module", 175, 0, 0, b"")
refused("finit_module", 313, -1, b"", 0)
refused("delete_module", 176, b"no-such-module", 0o4000)
refused("kexec_load", 246, 0, 0, 0, 0)
refused("kexec_file_load", 320, -1, -1, 0, 0, 0)
refused("reboot", 169, 0, 0, 0, 0)
refused("settimeofday", 164, now, 0)
refused("clock_settime", 227, 0, now)
refused("clock_settime(NULL)", 227, 0, 0)
refused("clock_adjtime", 305, 0, ctypes.create_string_buffer(256))
refused("swapon", 167, b"/nonexistent", 0)
refused("swapoff", 168, b"/nonexistent")
refused("sethostname", 170, name, len(name))
refused("setdomainname", 171, b"(none)", 6)
refused("acct", 163, b"/nonexistent")
refused("syslog", 103, 10, 0, 0)
refused("iopl", 172, 0)
refused("ioperm", 173, 0x80, 1, 0)
refused("quotactl", 179, 0, 0, 0, 0)
refused("vhangup", 153)
command("date -s", "date", "-s", f"@{int(time.time())}")
command("hostname", "hostname", name.decode())
done()
