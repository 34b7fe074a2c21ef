# case: A12
# title: perf_event_open
# users: user root
# control: seccomp
import struct

task_clock = ctypes.create_string_buffer(struct.pack("IIQ", 1, 128, 1), 128)
refused("perf_event_open(task clock of myself)", 298, task_clock, 0, -1, -1, 0)
refused("perf_event_open(whole cpu)", 298, task_clock, -1, 0, -1, 0)
refused("perf_event_open(NULL)", 298, 0, 0, -1, -1, 0)
done()
