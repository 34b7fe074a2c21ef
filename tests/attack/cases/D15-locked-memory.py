# case: D15
# title: locked, huge and secret memory
# users: user root
# control: rlimits
# heavy: yes
import mmap

MLOCK, MLOCK2, MLOCKALL, MMAP = 149, 325, 151, 9
SIZE = 1 << 20
page = mmap.mmap(-1, SIZE)
address = ctypes.addressof(ctypes.c_char.from_buffer(page))


def locked(what, nr, *args):
    ret, why = S(nr, *args)
    if ret == 0:
        pwned(what)
    else:
        denied(what, why)


def session():
    locked("mlock of 1 MiB", MLOCK, address, SIZE)
    locked("mlock2 of 1 MiB", MLOCK2, address, SIZE, 1)
    locked("mlockall", MLOCKALL, 3)
    return 0


in_child(session)
HUGE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000
attempt("a huge page", mmap.mmap, -1, 2 << 20, HUGE)
refused("memfd_secret", 447, 0)
done()
