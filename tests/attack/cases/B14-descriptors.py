# case: B14
# title: nothing but the standard descriptors is inherited
# users: user root
def check(how, *argv):
    """ls shows the descriptors of the process that runs it, here always a shell that waits."""
    p = subprocess.run(
        [*argv, "sh", "-c", "ls -l /proc/$$/fd; true"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.findall(r" (\d+) -> (.+)$", p.stdout, re.M)
    if len(found) < 3:
        sys.exit(f"{how}: descriptors are not shown: {p.stdout}")
    judge(how, found)


def judge(how, found):
    for number, target in found:
        expected = number in "012" and re.match(r"(pipe|socket):\[|/dev/(null|pts/\d+)$", target)
        if expected:
            denied(f"{how}: descriptor {number}", target)
        else:
            pwned(f"{how}: descriptor {number} is {target}")


# The descriptor that lists the directory is closed again when it is looked at.
judge(
    "the program",
    [
        (n, os.readlink(f"/proc/self/fd/{n}"))
        for n in os.listdir("/proc/self/fd")
        if os.path.lexists(f"/proc/self/fd/{n}")
    ],
)
check("a shell")
if not ROOT:
    check("sudo", "sudo")
    check("sudo -u user", "sudo", "-u", "user")
if os.getcwd() != os.path.expanduser("~"):
    pwned(f"started in {os.getcwd()}")
done()
