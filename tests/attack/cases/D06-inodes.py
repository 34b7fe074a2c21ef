# case: D06
# title: inodes
# users: user root
# options: --disk 16M --timeout 60s
# expect-limit: disk
# control: disk
# heavy: yes
INODES, MOST = 4096, 6000  # one per 4 KiB of disk
top = os.path.expanduser("~/many")
os.mkdir(top)
makers = {
    "files": lambda p: os.close(os.open(p, os.O_CREAT | os.O_WRONLY)),
    "directories": os.mkdir,
    "symlinks": lambda p: os.symlink("x", p),
    "fifos": os.mkfifo,
}
made = 0
for kind, make in makers.items():
    try:
        for i in range(MOST // len(makers) if kind != "files" else MOST):
            make(f"{top}/{kind}-{i}")
            made += 1
    except OSError as e:
        denied(f"{kind} after {made} inodes", name_of(e))
        break
if made > INODES:
    pwned(f"{made} inodes under a limit of {INODES}")
try:
    for i in range(MOST):
        os.link(f"{top}/files-0", f"{top}/link-{i}")
    if not CONTROL:
        pwned(f"{MOST} hard links with no inode left")
except OSError as e:
    denied("hard links", name_of(e))
done()
