# case: A21
# title: x32 and 32-bit system calls
# users: user root
# control: seccomp
# A filter that looks at numbers only sees other calls under these: the architecture comes first.
import mmap

X32 = 0x40000000
for name, nr in (("getpid", 39), ("execve", 520), ("mount", 165), ("unshare", 272)):
    refused(f"x32 {name}", X32 + nr, 0, 0, 0, ok=("ENOSYS",))


def int80():
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20 (getpid); int 0x80; ret
    getpid = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    os._exit(1 if getpid() == os.getpid() else 2)


status = in_child(int80)
if status == 1:
    pwned("32-bit getpid through int 0x80")
elif status in (2, -signal.SIGSYS, -signal.SIGSEGV):
    denied("int 0x80", f"status {status}")
else:
    sys.exit(f"the 32-bit attempt ended in an unforeseen way: {status}")
done()
