# case: D09
# title: memory in pipes
# users: user root
# options: --memory 48M --timeout 60s
# control: cgroup
# heavy: yes
import fcntl
import resource

LIMIT, MOST = 48 << 20, 128 << 20
F_SETPIPE_SZ = 1031


def stuff():
    weight = volunteer()  # noqa: F841  kept until the end
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    chunk, stored = bytes(1 << 20), 0
    try:
        while stored < MOST:
            _, w = os.pipe2(os.O_NONBLOCK)
            try:
                fcntl.fcntl(w, F_SETPIPE_SZ, 1 << 20)
            except OSError:
                pass  # beyond a bound of its own the kernel gives small ones
            stored += os.write(w, chunk)
            if stored > LIMIT:
                pwned(f"{stored >> 20} MiB in pipes under a limit of {LIMIT >> 20}")
                break
    except OSError as e:
        denied(f"pipes after {stored >> 20} MiB", name_of(e))


denied("pipes", f"status {in_child(stuff)}")
done()
