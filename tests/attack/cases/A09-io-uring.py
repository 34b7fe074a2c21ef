# case: A09
# title: io_uring
# users: user root
# options: --timeout 30s
# control: seccomp
refused("io_uring_setup", 425, 8, ctypes.create_string_buffer(120))
refused("io_uring_enter", 426, -1, 0, 0, 0, 0, 0)
refused("io_uring_register", 427, -1, 0, 0, 0)
if not CONTROL:
    operations, _ = stress("--io-uring", "1", "-t", "1")
    if operations.get("io-uring", 0):
        pwned("stress-ng did io_uring operations")
done()
