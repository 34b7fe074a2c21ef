# case: D13
# title: pending signals and timers
# users: user root
# options: --timeout 60s
# control: rlimits
# heavy: yes
SIGQUEUE, TIMER_CREATE, TIMERFD_CREATE = 129, 222, 283
LIMIT, MOST = 1024, 3000


def flood(what, one):
    n = 0
    while n < MOST:
        ret, why = one()
        if ret < 0:
            break
        n += 1
    if n > LIMIT:
        pwned(f"{n} {what} under a limit of {LIMIT}")
    else:
        denied(f"{what} after {n}", why)


def signals():
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
    info = ctypes.create_string_buffer(128)
    ctypes.memmove(info, (ctypes.c_int * 3)(int(signal.SIGRTMIN), 0, -1), 12)
    flood("pending signals", lambda: S(SIGQUEUE, os.getpid(), int(signal.SIGRTMIN), info))
    return 0


def timers():
    event = ctypes.create_string_buffer(64)
    ctypes.memmove(ctypes.byref(event, 12), (ctypes.c_int * 1)(1), 4)  # SIGEV_NONE
    out = ctypes.create_string_buffer(8)
    flood("timers", lambda: S(TIMER_CREATE, 1, event, out))
    return 0


def timer_fds():
    n = 0
    while n < 20000 and S(TIMERFD_CREATE, 1, 0)[0] >= 0:
        n += 1
    return 1 if n > 4096 else 0


in_child(signals)
in_child(timers)
if not CONTROL and in_child(timer_fds) == 1:
    pwned("more timer descriptors than a process may have")
done()
