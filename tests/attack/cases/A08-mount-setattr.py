# case: A08
# title: changing flags and id maps of mounts
# users: user root
# control: seccomp,caps
# control-user: root
import struct

AT_FDCWD, AT_RECURSIVE = -100, 0x8000
RDONLY, NOSUID, NODEV, NOEXEC, IDMAP = 0x1, 0x2, 0x4, 0x8, 0x100000


def attributes(add, clear, userns=0):
    return ctypes.create_string_buffer(struct.pack("4Q", add, clear, 0, userns))


before = open("/proc/self/mountinfo").read()
weak = attributes(0, RDONLY | NOSUID | NODEV | NOEXEC)
for path in (b"/", b"/usr", b"/proc/sys", b"/dev"):
    refused(f"mount_setattr({path.decode()})", 442, AT_FDCWD, path, AT_RECURSIVE, weak, 32)
refused("mount_setattr(idmap)", 442, AT_FDCWD, b"/usr", 0, attributes(IDMAP, 0, 0), 32)
refused("open_tree_attr", 467, AT_FDCWD, b"/usr", 1, weak, 32)
if open("/proc/self/mountinfo").read() != before:
    pwned("the mounts have changed")
done()
