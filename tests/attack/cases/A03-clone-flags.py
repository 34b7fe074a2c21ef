# case: A03
# title: namespaces through clone flags
# users: user root
# control: seccomp,nested-ns
SYS_CLONE = 56


def clone(what, flags):
    ret, why = S(SYS_CLONE, flags | signal.SIGCHLD, 0, 0, 0, 0)
    if ret == 0:
        os._exit(0)
    if ret < 0:
        return denied(what, why)
    os.waitpid(ret, 0)
    pwned(what)


for name, bit in CLONE_NEW.items():
    clone(f"clone({name})", bit)
    clone(f"clone(NEWUSER, {name})", bit | CLONE_NEW["NEWUSER"])
# The kernel cuts the flags to 32 bits: a filter that compares 64 would be fooled.
clone("clone(NEWUSER) under a high bit", 1 << 40 | CLONE_NEW["NEWUSER"])
if in_child(lambda: 7) != 7:
    sys.exit("a plain fork does not work")
done()
