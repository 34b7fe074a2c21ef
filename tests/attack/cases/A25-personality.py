# case: A25
# title: personality and modify_ldt
# users: user root
# control: seccomp
import struct

SYS_PERSONALITY, SYS_MODIFY_LDT = 135, 154


def session():
    for name, persona in (
        ("ADDR_NO_RANDOMIZE", 0x40000),
        ("READ_IMPLIES_EXEC", 0x400000),
        ("MMAP_PAGE_ZERO", 0x100000),
        ("ADDR_COMPAT_LAYOUT", 0x200000),
        ("ADDR_NO_RANDOMIZE under a high bit", 1 << 32 | 0x40000),
    ):
        refused(f"personality({name})", SYS_PERSONALITY, persona, ok=("EPERM",))
    entry = ctypes.create_string_buffer(struct.pack("4I", 0, 0, 0xFFFFF, 0x51))
    refused("modify_ldt(write)", SYS_MODIFY_LDT, 1, entry, 16)
    refused("modify_ldt(read)", SYS_MODIFY_LDT, 0, entry, 16)
    return 0


if in_child(session) != 0:
    sys.exit("the attempt itself failed")
done()
