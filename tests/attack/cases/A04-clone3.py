# case: A04
# title: namespaces through clone3
# users: user root
# control: seccomp
# The flags lie behind a pointer, where no filter can look: only ENOSYS is right, and libc must do
# without.
import struct
import threading

SYS_CLONE3 = 435


def clone3(what, flags):
    args = ctypes.create_string_buffer(struct.pack("11Q", flags, 0, 0, 0, signal.SIGCHLD, *[0] * 6))
    ret, why = S(SYS_CLONE3, args, 88)
    if ret == 0:
        os._exit(0)
    if ret > 0:
        os.waitpid(ret, 0)
    if why == "ENOSYS":
        denied(what, why)
    else:
        pwned(f"{what} was reached: {ret} {why}")


clone3("clone3(NEWUSER)", CLONE_NEW["NEWUSER"])
clone3("clone3(NEWTIME)", 0x80)
clone3("clone3()", 0)
ran = []
thread = threading.Thread(target=ran.append, args=(1,))
thread.start()
thread.join()
if not ran:
    sys.exit("threads do not work")
done()
