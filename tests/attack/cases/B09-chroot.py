# case: B09
# title: leaving through chroot, or through what set-up left mounted
# users: user root
# control: pivot
OWN = re.compile(r"^/(usr|usr/(local|src|etc)|dev|dev/(pts|shm|mqueue)|proc(/.*)?|sys(/.*)?)?$")
root = os.stat("/")


def climb(what):
    os.chdir("/")
    for _ in range(64):
        os.chdir("..")
    if not os.path.samestat(os.stat("."), root):
        pwned(f"{what}: the top is another directory: {os.listdir('.')}")
    else:
        denied(what, "still in the sandbox's root")


climb("../ x 64")


def double_chroot():
    os.makedirs("/tmp/jail/inner", exist_ok=True)
    out = os.open("/", os.O_RDONLY)
    os.chroot("/tmp/jail")
    os.chroot("inner")
    os.fchdir(out)
    for _ in range(64):
        os.chdir("..")
    if not os.path.samestat(os.stat("."), root):
        return 1
    os.chroot(".")
    return 0 if os.path.exists("/proc/1/comm") else 1


try:
    status = in_child(double_chroot)
except OSError:
    status = 99
if status == 1:
    pwned("double chroot leads out")
else:
    denied("double chroot", "needs a capability" if status == 99 else "still in the sandbox's root")
for link in ("/proc/self/root", "/proc/1/root", "/proc/self/cwd", "/proc/thread-self/root"):
    try:
        if not os.path.samestat(os.stat(f"{link}/../../.."), root):
            pwned(f"{link} leads out")
    except OSError as e:
        denied(link, name_of(e))
for line in open("/proc/self/mountinfo"):
    point = line.split()[4]
    if not OWN.match(point):
        pwned(f"a foreign mount is in the sandbox: {point}")
done()
