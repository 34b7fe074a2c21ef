# case: B03
# title: kernel parameters cannot be written
# users: user root
# control: proc-mask
# control-user: root
# Opening for writing is the whole attempt: nothing is ever written.
NAMES = """kernel/core_pattern kernel/modprobe kernel/hostname kernel/domainname kernel/panic
kernel/ns_last_pid kernel/shmmax kernel/msgmni kernel/sem kernel/randomize_va_space kernel/sysrq
kernel/unprivileged_bpf_disabled kernel/io_uring_disabled kernel/pid_max kernel/threads-max
vm/drop_caches vm/overcommit_memory vm/panic_on_oom vm/mmap_min_addr fs/binfmt_misc/register
fs/protected_symlinks fs/suid_dumpable fs/mqueue/queues_max user/max_user_namespaces
user/max_mnt_namespaces net/ipv4/ip_forward net/ipv4/ping_group_range
net/ipv4/ip_unprivileged_port_start net/core/somaxconn""".split()

for name in NAMES:
    attempt(f"open /proc/sys/{name} for writing", opens, f"/proc/sys/{name}", os.O_WRONLY)
for top, _, files in os.walk("/proc/sys"):
    for name in files:
        path = os.path.join(top, name)
        if os.access(path, os.W_OK):
            pwned(f"{path} is writable")
attempt("create /proc/sys/x", os.mkdir, "/proc/sys/x")
done()
