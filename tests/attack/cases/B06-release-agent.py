# case: B06
# title: cgroup release_agent
# users: user root
# control: seccomp,caps
# control-user: root
SYS_MOUNT, SYS_UMOUNT2 = 165, 166
at = f"/tmp/cgroup-{os.getpid()}".encode()
os.mkdir(at)
for kind, data in (
    (b"cgroup", b"rdma"),
    (b"cgroup", b"memory"),
    (b"cgroup", b"pids"),
    (b"cgroup", b"devices"),
    (b"cgroup", b"none,name=sandglass-attack"),
    (b"cgroup2", None),
):
    what = f"mount {kind.decode()} {(data or b'').decode()}"
    ret, why = S(SYS_MOUNT, b"x", at, kind, 0, data)
    if ret < 0:
        denied(what, why)
        continue
    pwned(what)
    attempt("open release_agent for writing", opens, f"{at.decode()}/release_agent", os.O_WRONLY)
    S(SYS_UMOUNT2, at, 2)
done()
