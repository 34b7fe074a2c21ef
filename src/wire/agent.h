/* The operations of the agent: the request of each, and its answer. Host and agent both include
 * this file, and nothing else defines the contract. Fields are listed in wire order
 * (lib/channel/wire.h).
 *
 * Paths are absolute, or relative to the user's home; they are resolved inside the sandbox with the
 * permissions of `user`, which is "user", "root", or a name or an id of the sandbox's own
 * /etc/passwd. The agent refuses any other with EUSERS. In requests about files, USER_AS_ROOT before the
 * name asks for root's rights, and what is made belongs to the user. docs/internals/channel.md has the
 * errors. */
#pragma once

#include <stdint.h>

#define OPS_PATH_MAX 4096
#define OPS_NAME_MAX 32
#define USER_AS_ROOT "+"
#define OPS_TAG_MAX  256
#define OPS_NOTE_MAX (1024u * 1024)
#define OPS_ARG_MAX  (128u * 1024)      /* one argument or variable: Linux has the same limit */
#define OPS_ARGS_MAX 4096               /* arguments, and variables */
#define OPS_OPEN_MAX (2u * 1024 * 1024) /* all of an OPEN request; sent as OPEN + CONTINUE... */

enum chan_op {
    /* request: user str, cwd str ("" = home), flags u32, rows u32, cols u32, timeout_ms u64 (0 =
     *          none), tag str, note str, n_args u32, args str..., n_env u32, "K=V" str...
     * `tag` is a name for later requests, "" for none. The agent keeps `note` for the host, does
     * not read it, and gives it back in the list. EVENT_STARTED when exec has succeeded; DATA from
     * the host is stdin, EOF closes it;
     * DATA to the host is CHAN_STDOUT / CHAN_STDERR (a pty: CHAN_STDOUT only).
     * END when the process has exited and its output is drained. Its payload: see END at the end of
     * this file. At the time limit the agent kills the process's session. CANCEL kills the session
     * too, unless PROC_DETACH is set. -EAGAIN: too many processes run, or their notes are too long,
     * taken together. */
    OP_PROCESS_START = 1,
    /* request: none. DATA: per living process pid u32, user str, tag str, note str, command str.
     * END result: n u32. */
    OP_PROCESS_LIST,
    /* request: pid u32, tag str, signal u32. SIGKILL goes to the whole session, any other to the
     * process group. Here and below: pid 0 means "by tag"; -ESRCH if there is no such process that
     * PROCESS_START made. */
    OP_PROCESS_SIGNAL,
    /* request: pid u32, tag str. Joins the subscribers of a process: EVENT_STARTED, DATA from now
     * on, END. A process that exited less than PROC_KEPT_MS ago still answers STARTED and END. */
    OP_PROCESS_ATTACH,
    /* request: pid u32, tag str, flags u32 (INPUT_*). The agent writes DATA to the process's stdin,
     * in order with what others write. END comes after EOF, when the process has taken all of it.
     * -EINVAL: the process has no stdin of that kind; -EPIPE: its stdin is closed. */
    OP_PROCESS_INPUT,
    /* request: pid u32, tag str, rows u32, cols u32. -ENOTTY without a terminal. */
    OP_PROCESS_RESIZE,

    /* request: user str, path str, offset u64, max u64 (0 = to the end). EVENT_ENTRY of
     * the file itself, links followed, then DATA = the bytes: size - offset of them, or max if that
     * is less. Regular files only. -ESTALE: the file became shorter meanwhile. */
    OP_FILE_READ,
    /* request: user str, path str, mode u32 (e.g. 0644; one that exists keeps its own), flags u32
     *          (FILE_PARENTS, FILE_IN_PLACE), metadata. DATA..., EOF. END result: one entry.
     * The file appears whole or not at all: written beside its place and renamed there. With
     * FILE_IN_PLACE the file itself is emptied, given to the user, and written: inode, hard links and
     * watches stay, and of a file that was there a write that fails leaves a part. */
    OP_FILE_WRITE,
    /* request: user str, path str, depth u32 (1 = direct children). EVENT_ENTRY per entry, in
     * lexical order, a directory before what is in it. */
    OP_FILE_LIST,
    /* request: user str, path str. END result: one entry, of the link itself if it is one. */
    OP_FILE_STAT,
    /* request: user str, from str, to str, flags u32 (FILE_PARENTS). END result: one entry. */
    OP_FILE_MOVE,
    /* request: user str, path str, flags u32 (FILE_RECURSIVE). Symbolic links are removed, not
       followed. */
    OP_FILE_REMOVE,
    /* request: user str, path str, mode u32, flags u32 (FILE_PARENTS). END result: one entry.
     * -EEXIST: the directory is there already; -ENOTDIR: the path, or a parent of it, exists and is
     * no directory. */
    OP_FILE_MKDIR,
    /* request: user str, path str, flags u32 (FILE_RECURSIVE, FILE_ENTRIES).
     * EVENT_WATCHING once set up, then EVENT_CHANGE until CANCEL. */
    OP_FILE_WATCH,
    /* request: port u32 (1..65535). Connects to that TCP port of the sandbox's loopback, 127.0.0.1
     * then ::1. EVENT_STARTED (empty) when connected. DATA both ways; EOF shuts our direction down.
     * END when the server has closed and all it sent is delivered; -ECONNREFUSED if nobody listens.
     */
    OP_NET_CONNECT,
    /* Kernels: interpreters that keep their state between pieces of code, here called cells. A
     * context is a place for one kernel, with an id (KERNEL_ID_LEN characters); each language has a
     * default one. Contexts belong to the sandbox, not to the channel: they outlive it. -ENOENT: no
     * such context; -EINVAL: no such language, and the message lists what there is; -EAGAIN: too
     * many.
     *
     * request: context str ("": the language's default), language str ("": python; "" if a context
     *          is given), timeout_ms u64 (0 = none), n_env u32, "K=V" str..., n_cell_env u32, "K=V"
     *          str...
     * `env` is for the kernel, if this cell starts one; `cell_env` is for this cell alone.
     * DATA is the code, EOF its end: at most KERNEL_CODE_MAX bytes, -E2BIG beyond. The cells of a
     * context run one after the other, in the order of their EOFs. EVENT_EXECUTING comes when it is
     * this cell's turn; then DATA to the host: CHAN_STDOUT, CHAN_STDERR, and CHAN_KERNEL, which
     * brings the results (kernels/README.md), one packet a frame. END result: how u32 (KERNEL_*),
     * code u32 (KERNEL_DIED: exit status, or 128 + signal, or KERNEL_CODE_UNKNOWN; KERNEL_DONE: the
     * cell's own status, 0..255, where the language has one), timed_out u32 (0 or 1), memory_limit
     * u64 (see END; of KERNEL_DIED alone, and only if it was reached since the cell began).
     * A cell that never had its turn ends without EVENT_EXECUTING. -EIO: no kernel can be started.
     * CANCEL takes the cell out of the queue, or interrupts it if it runs; so does the loss of the
     * channel. */
    OP_KERNEL_EXECUTE,
    /* request: language str, cwd str ("": home). A new context. END result: one context. */
    OP_KERNEL_CREATE,
    /* request: none. EVENT_CONTEXT for each context. The defaults of python and javascript are
     * always among them, used or not. */
    OP_KERNEL_LIST,
    /* request: context str. */
    OP_KERNEL_REMOVE,
    OP_KERNEL_RESTART,   /* END result: one context */
    OP_KERNEL_INTERRUPT, /* the cell that runs in it, if one does */
    /* request: language str, n_env u32, "K=V" str... Starts the language's default kernel if there
     * is none, and does not wait until it is ready. */
    OP_KERNEL_WARM,
    /* Live fork (docs/internals/fork.md). request: wait_ms u64. No cell begins from now on. As soon
     * as none runs: EVENT_KERNEL for each context, then EVENT_HELD. Cells then wait until CANCEL or
     * the loss of the channel; after KERNEL_HOLD_MS the hold ends by itself. -EBUSY: a cell still
     * ran after wait_ms, and the message says in which context; no cell waits then. -EALREADY:
     * another hold is under way. */
    OP_KERNEL_HOLD,
    /* request: n u32, then for each context: id str, language str, cwd str, is_default u32, cells
     * u32, was u32 (pid of the kernel it was copied from, 0: without a kernel), note str (told to
     * its next cell: why the kernel's state is gone; "": it is not), n_env u32, "K=V" str... These
     * contexts replace all that the agent had; the old ones end, with their kernels. The copied
     * kernels have come over the line before (LINE_KERNEL). END result: n u32, how many have a
     * kernel. -ENOENT: a copy has not come, and nothing has changed. */
    OP_KERNEL_ADOPT,
    /* request: none. END result: disk_total u64, disk_used u64, both in bytes. */
    OP_DISK,
    /* request: none. The agent answers END at once: the host's watchdog asks whether it is
     * alive. */
    OP_PING,
    /* request: user str, path str, group str, mode u32 (UNPACK_OWN_MODE: as the archive says), strip
     *          u32. DATA: a tar archive, EOF. END result: n u64, files and links that were made.
     * Unpacks below the path, which is made if it ends in "/"; without it, and if no directory is
     * there, a single file becomes the path itself. The first `strip` components of each name are
     * dropped. All is done as root, for user and group ("": the user's). -EINVAL: the archive is malformed, or leads
     * out of the path; then part of it may be there. */
    OP_FILE_UNPACK,
    /* request: user str, path str, mode u32, flags u32 (FILE_PARENTS), n u32 (to FILE_SOURCES_MAX), path str...
     * The contents of these regular files, one after the other, become the file, which appears whole or not at
     * all; then they are removed. END result: one entry. */
    OP_FILE_COMPOSE,
    /* request: user str, path str. END result: the path, made absolute: "" is the user's home. */
    OP_USER,
    OP_MAX_
};

/* OP_PROCESS_START flags */
#define PROC_PTY   1u /* a pseudo-terminal of rows x cols is the process's stdin, stdout, stderr */
#define PROC_STDIN 2u /* without it stdin is /dev/null */
/* The process outlives its stream: CANCEL, and the loss of the channel, only take a subscriber
 * away. The agent reads output at the pace of the slowest subscriber, and drops it while there is
 * none. */
#define PROC_DETACH 4u

#define PROC_KEPT_MS 30000 /* how long a process that has exited is remembered */

/* OP_PROCESS_INPUT flags */
#define INPUT_PTY   1u /* meant for a terminal; without it, for a pipe */
#define INPUT_CLOSE 2u /* EOF closes the process's stdin too */

/* OP_FILE_* flags */
#define FILE_RECURSIVE 1u
#define FILE_PARENTS   2u
#define FILE_ENTRIES   4u /* changes carry the entry */
#define FILE_IN_PLACE  8u

#define FILE_SOURCES_MAX 256

#define UNPACK_OWN_MODE 0xffffffffu

/* Metadata of a file: n u32, then key str, value str each. Kept as the extended attributes
 * user.e2b.<key>. */
#define FILE_XATTR_PREFIX  "user.e2b."
#define FILE_META_KEY_MAX  246
#define FILE_META_KEYS_MAX 256
#define FILE_META_MAX      4096 /* keys and values together */

enum chan_data { CHAN_STDIN = 0, CHAN_STDOUT = 1, CHAN_STDERR = 2, CHAN_KERNEL = 3 };

#define KERNEL_ID_LEN   36 /* as a UUID is written */
#define KERNEL_CODE_MAX (16u * 1024 * 1024)
#define KERNELS_MAX     64 /* contexts of a sandbox */
#define KERNEL_HOLD_MS  10000
/* The agent cannot know how a copy of a zygote ended: Linux tells that to the parent only, which is
 * outside the sandbox. */
#define KERNEL_CODE_UNKNOWN 0xffffffffu

/* How a cell ended. After every end but KERNEL_DONE the kernel's state is gone. */
enum kernel_end {
    KERNEL_DONE,      /* by itself, perhaps with an error or interrupted: its packets say so */
    KERNEL_DIED,      /* its kernel ended: code */
    KERNEL_RESTARTED, /* by request */
    KERNEL_REMOVED,   /* by request */
    KERNEL_STUCK,     /* the kernel did not heed the interrupt, and was killed */
    KERNEL_BROKE,     /* the kernel broke its protocol, and was killed */
    KERNEL_END_MAX_
};

/* A context: id str, language str, cwd str, state u32, cells u32 (run so far), is_default u32,
 * cold u32: its kernel is no copy. */
enum kernel_state { KERNEL_ABSENT, KERNEL_STARTING, KERNEL_IDLE, KERNEL_BUSY };

enum chan_control {
    CONTROL_SIGNAL = 1, /* u32 signal: to the process group of this stream's process */
    CONTROL_RESIZE,     /* u32 rows, u32 cols */
    CONTROL_DISCARD,    /* u32 channel: from now on read this output and drop it inside */
    CONTROL_CONTINUE,   /* more bytes of the OPEN request: see OPS_OPEN_MAX */
    CONTROL_CATCH_UP,   /* to a watch: EVENT_CAUGHT_UP comes after all changes until now */
    CONTROL_MAX_
};

enum chan_event {
    EVENT_STARTED =
        1,          /* of a process: u32 pid inside the sandbox, u32 1 if it has a terminal, or 0 */
    EVENT_ENTRY,    /* one file entry: see below */
    EVENT_WATCHING, /* empty */
    EVENT_CHANGE,   /* u32 enum watch_change, path str relative to the watched directory, then
                     * with FILE_ENTRIES: u32 0, or 1 and the entry */
    EVENT_CAUGHT_UP, /* empty */
    EVENT_EXECUTING, /* u32 number of the cell, from 1; str: "", or why the state that the kernel
                      * had before is gone */
    EVENT_CONTEXT,   /* one context: see above */
    EVENT_KERNEL, /* one context: see above; then of its kernel: pid u32 (0: none), twin u32 (1: a
                   * copy, which can be copied), n_env u32, "K=V" str... that it was started with */
    EVENT_HELD,   /* empty */
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
 * owner str, group str, size u64, mtime_ns u64, symlink_target str (as written; "" if no link),
 * then of the file that a link leads to: target_path str (resolved; "" if no link, or dangling),
 * target_type u32, target_mode u32, target_size u64; then metadata (of the link's target if it is a
 * link). */
enum entry_type { ENTRY_OTHER, ENTRY_FILE, ENTRY_DIR, ENTRY_SYMLINK };

/* END payload: status u32 (0 or a positive errno), message str (empty when status is 0), then the
 * operation's result if status is 0. For OP_PROCESS_START and _ATTACH the result is:
 *   how u32 (0 exited, 1 killed by signal), code u32 (exit status or signal),
 *   utime_us u64, stime_us u64, maxrss_bytes u64,
 *   disk_used u64, disk_full u32 (bit 0: no blocks left, bit 1: no inodes left), dropped u64
 *   (output bytes read and dropped after CONTROL_DISCARD, stdout), dropped u64 (stderr),
 *   timed_out u32 (1: its own time limit ended it),
 *   memory_limit u64 (bytes: the sandbox reached this limit of its memory while the process ran, Linux
 *   killed for that, and the process was killed by SIGKILL, or, as a shell tells of a program that it
 *   ran, exited with 128 + SIGKILL; else 0). */
#define PROC_EXITED 0u
#define PROC_KILLED 1u
