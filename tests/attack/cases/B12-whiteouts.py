# case: B12
# title: what was removed does not come back
# users: user root
lower = "/etc/timezone" if ROOT else os.path.expanduser("~/.profile")
text = open(lower).read()
where, name = os.path.split(lower)
for round_ in range(50):
    os.unlink(lower)
    if os.path.lexists(lower) or name in os.listdir(where):
        pwned(f"{lower} is still there after unlink")
    os.mkdir(lower)
    if os.listdir(lower):
        pwned(f"the new directory {lower} is not empty")
    os.rmdir(lower)
    open(lower, "w").write("mine")
    if open(lower).read() != "mine":
        pwned(f"{lower} shows old content")
if ROOT:
    # A directory of the layer below is replaced by one of ours.
    os.mkdir("/etc/mine")
    open("/etc/mine/a", "w").close()
    subprocess.run(["rm", "-rf", "/etc/ssl"], check=True)
    os.rename("/etc/mine", "/etc/ssl")
    if os.listdir("/etc/ssl") != ["a"]:
        pwned(f"/etc/ssl shows {os.listdir('/etc/ssl')}")
    subprocess.run(["rm", "-rf", "/etc/ssl"], check=True)
    os.mkdir("/etc/ssl")
    if os.listdir("/etc/ssl"):
        pwned("old files reappear in /etc/ssl")

# The marks of the overlay itself must not be in anyone's hands.
os.unlink(lower)
attempt("a whiteout by hand", os.mknod, lower, 0o020000, 0)
os.makedirs(f"{where}/opaque", exist_ok=True)
for key in ("opaque", "redirect", "metacopy", "upper", "origin"):
    attempt(
        f"trusted.overlay.{key}", os.setxattr, f"{where}/opaque", f"trusted.overlay.{key}", b"y"
    )
done()
