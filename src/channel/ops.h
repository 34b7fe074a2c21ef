/* The operations of the agent: what goes into OPEN, what comes back. Both sides include this, and
 * nothing else defines the contract. Fields are listed in wire order (wire.h).
 *
 * Paths are absolute, or relative to the user's home; they are resolved inside the sandbox with the
 * permissions of `user`. `user` is a name in the sandbox's /etc/passwd as the template made it:
 * "user" or "root". */
#pragma once

#include <stdint.h>

#define OPS_PATH_MAX 4096
#define OPS_NAME_MAX 32
#define OPS_ARG_MAX  (128u * 1024)      /* one argument or variable, as the kernel has it */
#define OPS_ARGS_MAX 4096               /* arguments, and variables */
#define OPS_OPEN_MAX (2u * 1024 * 1024) /* all of an OPEN request; sent as OPEN + CONTINUE... */

enum chan_op {
    /* request: user str, cwd str ("" = home), flags u32, rows u32, cols u32,
     *          n_args u32, args str..., n_env u32, "K=V" str...
     * EVENT_STARTED when exec has succeeded; DATA from the host is stdin, EOF closes it;
     * DATA to the host is CHAN_STDOUT / CHAN_STDERR (a pty: CHAN_STDOUT only).
     * END when the process has exited and its output is drained. Payload: struct of END below.
     * CANCEL kills the process group. */
    OP_PROCESS_START = 1,
    /* request: none. END result: n u32, then per process: pid u32, user str, command str. */
    OP_PROCESS_LIST,
    /* request: pid u32, signal u32. The pid must be one that PROCESS_START reported. */
    OP_PROCESS_SIGNAL,

    /* request: user str, path str, offset u64, max u64 (0 = to the end). DATA = the bytes.
     * Regular files only. */
    OP_FILE_READ,
    /* request: user str, path str, mode u32 (e.g. 0644), flags u32 (FILE_*). DATA..., EOF.
     * The file appears whole or not at all: written beside its place and renamed there. */
    OP_FILE_WRITE,
    /* request: user str, path str, depth u32 (1 = direct children). EVENT_ENTRY per entry. */
    OP_FILE_LIST,
    /* request: user str, path str. END result: one entry. */
    OP_FILE_STAT,
    /* request: user str, from str, to str. */
    OP_FILE_MOVE,
    /* request: user str, path str, flags u32 (FILE_RECURSIVE). Symbolic links are removed, not
       followed. */
    OP_FILE_REMOVE,
    /* request: user str, path str, mode u32, flags u32 (FILE_PARENTS). */
    OP_FILE_MKDIR,
    /* request: user str, path str, flags u32 (FILE_RECURSIVE).
     * EVENT_WATCHING once set up, then EVENT_CHANGE until CANCEL. */
    OP_FILE_WATCH,
    /* request: none; answers END at once. The host's watchdog. */
    OP_PING,
    OP_MAX_
};

/* OP_PROCESS_START flags */
#define PROC_PTY   1u /* a pseudo-terminal of rows x cols is the process's stdin, stdout, stderr */
#define PROC_STDIN 2u /* without it stdin is /dev/null */

/* OP_FILE_* flags */
#define FILE_RECURSIVE 1u
#define FILE_PARENTS   2u

enum chan_data { CHAN_STDIN = 0, CHAN_STDOUT = 1, CHAN_STDERR = 2 };

enum chan_control {
    CONTROL_SIGNAL = 1, /* u32 signal: to the process group of this stream's process */
    CONTROL_RESIZE,     /* u32 rows, u32 cols */
    CONTROL_DISCARD,    /* u32 channel: from now on read this output and drop it inside */
    CONTROL_CONTINUE,   /* more bytes of the OPEN request: see OPS_OPEN_MAX */
    CONTROL_MAX_
};

enum chan_event {
    EVENT_STARTED = 1, /* u32 pid inside the sandbox */
    EVENT_ENTRY,       /* one file entry: see below */
    EVENT_WATCHING,    /* empty */
    EVENT_CHANGE,      /* u32 enum watch_change, path str relative to the watched directory */
    EVENT_MAX_
};

enum watch_change {
    WATCH_CREATE = 1,
    WATCH_WRITE,
    WATCH_REMOVE,
    WATCH_RENAME,
    WATCH_CHMOD,
    WATCH_OVERFLOW
};

/* A file entry: name str, path str, type u32 (enum entry_type), mode u32 (07777), uid u32, gid u32,
 * owner str, group str, size u64, mtime_ns u64, symlink_target str ("" if none). */
enum entry_type { ENTRY_OTHER, ENTRY_FILE, ENTRY_DIR, ENTRY_SYMLINK };

/* END payload: status u32 (0 or a positive errno), message str (empty when status is 0), then the
 * operation's result if status is 0. For OP_PROCESS_START the result is:
 *   how u32 (0 exited, 1 killed by signal), code u32 (exit status or signal),
 *   utime_us u64, stime_us u64, maxrss_bytes u64,
 *   disk_used u64, disk_full u32 (bit 0: no blocks left, bit 1: no inodes left), dropped u64
 *   (output bytes read and dropped after CONTROL_DISCARD, stdout), dropped u64 (stderr). */
#define PROC_EXITED 0u
#define PROC_KILLED 1u
