# case: B18
# title: core dumps
# users: user root
# options: --timeout 60s
# control: rlimits
import resource

try:
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    pwned("core dumps can be turned on")
except (ValueError, OSError) as e:
    denied("setrlimit(RLIMIT_CORE)", e)
os.makedirs("/tmp/core", exist_ok=True)
os.chdir("/tmp/core")


def crash():
    os.kill(os.getpid(), signal.SIGSEGV)


if not CONTROL:
    for _ in range(100):
        if in_child(crash) != -signal.SIGSEGV:
            sys.exit("a crash did not look like one")
    if in_child(lambda: ctypes.string_at(0)) != -signal.SIGSEGV:
        sys.exit("a real crash did not look like one")
    if os.listdir("."):
        pwned(f"core files: {os.listdir('.')}")
done()
