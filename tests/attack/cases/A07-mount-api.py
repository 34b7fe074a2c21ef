# case: A07
# title: the descriptor-based mount interface
# users: user root
# control: seccomp
AT_FDCWD = -100

for fs in (b"tmpfs", b"proc", b"overlay", b"ext4", b"cgroup"):
    refused(f"fsopen({fs.decode()})", 430, fs, 0)
refused("fsconfig", 431, -1, 6, 0, 0, 0)
refused("fsmount", 432, -1, 0, 0)
refused("fspick", 433, AT_FDCWD, b"/", 0)
refused("open_tree(CLONE)", 428, AT_FDCWD, b"/", 1)
refused("open_tree(CLONE, recursive)", 428, AT_FDCWD, b"/usr", 1 | 0x8000)
refused("move_mount", 429, -1, b"", -1, b"", 0)
done()
