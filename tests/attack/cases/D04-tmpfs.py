# case: D04
# title: memory through files
# users: user root
# options: --disk 16M --memory 128M --timeout 60s
# expect-limit: disk memory
# control: disk
# heavy: yes
DISK, MEMORY = 16 << 20, 128 << 20
MEGA = bytes(1 << 20)


def fill(top, most):
    """Small files, because one file alone ends at a limit of its own. Gives the space they take."""
    paths, taken = [], 0
    try:
        while taken < most:
            paths.append(f"{top}/fill-{len(paths)}")
            with open(paths[-1], "wb", buffering=0) as f:
                f.write(MEGA)
                taken += os.fstat(f.fileno()).st_blocks * 512
    except OSError as e:
        denied(f"{top} after {taken >> 10} KiB", name_of(e))
    return taken


total = 0
for top in ("/dev/shm", "/tmp", "/var/tmp", os.path.expanduser("~")) + (
    ("/run", "/opt") if ROOT else ()
):
    total += fill(top, 32 << 20 if not CONTROL else 6 << 20)
if total > DISK:
    pwned(f"{total >> 20} MiB of files under a limit of {DISK >> 20}")


def memfds():
    weight = volunteer()  # noqa: F841  kept until the end
    for i in range(2 * MEMORY >> 23):
        fd = os.memfd_create(f"m{i}")
        os.ftruncate(fd, 8 << 20)
        for at in range(8):
            os.pwrite(fd, MEGA, at << 20)
    pwned(f"{2 * MEMORY >> 20} MiB of memfds under a limit of {MEMORY >> 20}")


if not CONTROL:
    denied("memfds", f"status {in_child(memfds)}")
done()
