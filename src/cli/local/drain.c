/* `sandglass drain`: tells the server of a state directory to end in order, and waits for its end.
 *
 * The server gets SIGTERM. We find it by the lock that it holds on its state directory, so we need
 * no address and no key, and it does not matter what the server listens on. To never signal another
 * process that got the same number, we hold the server by a pidfd and look at the lock once more
 * before the signal. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>

#include "lib/base/clock.h"
#include "lib/base/fd.h"
#include "lib/text/json.h"
#include "lib/text/parse.h"
#include "cli/local/cli.h"
#include "cli/local/drain.h"
#include "lib/command/state_dir.h"
#include "lib/command/ui.h"

#define EXIT_NONE 1 /* exit status: there is no server */
#define PID_TEXT  32

struct drain_options {
    const char *state;
    bool json, help, now;
};

static const struct cli_option options[] = {
    {"state", 0, "DIR", "the server's state directory", CLI_TEXT(drain_options, state)},
    {"now", 0, NULL, "do not wait for requests under way", CLI_FLAG(drain_options, now)},
    {"json", 0, NULL, "print one JSON object", CLI_FLAG(drain_options, json)},
    {"help", 'h', NULL, "show this text", CLI_FLAG(drain_options, help)},
};
const struct cli_syntax drain_syntax = {options, ARRAY_SIZE(options), NULL, 0};

/* Reads from the lock file which process holds the lock. An error if nobody holds it. */
static int holder(int lock, const char *state, uint64_t *ret, struct sg_error *e)
{
    char text[PID_TEXT + 1];
    ssize_t n;

    if (flock(lock, LOCK_SH | LOCK_NB) == 0) {
        flock(lock, LOCK_UN);
        return err_set(e, SG_ERR_NOT_FOUND, -ESRCH, "no server runs with the state directory '%s'",
                       state);
    }
    n = pread(lock, text, PID_TEXT, 0);
    if (n < 0)
        return err_errno(e, "read '%s/lock'", state);
    text[n] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return parse_u64("the server's pid", text, 1, INT32_MAX, ret, e);
}

static int find_server(const char *state, int *ret_pidfd, uint64_t *ret_pid, struct sg_error *e)
{
    AUTO(free_p) char *path = NULL;
    AUTO(close_p) int lock = -1;
    uint64_t again = 0;
    int r;

    if (asprintf(&path, "%s/lock", state) < 0)
        abort(); /* out of memory */
    lock = open(path, O_RDONLY | O_CLOEXEC);
    if (lock < 0 && errno == ENOENT)
        return err_set(e, SG_ERR_NOT_FOUND, -ESRCH, "no server runs with the state directory '%s'",
                       state);
    if (lock < 0)
        return err_errno(e, "open '%s' (only root can drain a server)", path);
    r = holder(lock, state, ret_pid, e);
    if (r < 0)
        return r;
    *ret_pidfd = (int)syscall(SYS_pidfd_open, (pid_t)*ret_pid, 0);
    if (*ret_pidfd < 0)
        return err_errno(e, "find the server, process %llu", (unsigned long long)*ret_pid);
    r = holder(lock, state, &again, e);
    if (r == 0 && again != *ret_pid)
        r = err_set(e, SG_ERR_GONE, -ESTALE, "another server has just taken over '%s': try again",
                    state);
    return r;
}

static int end_server(int pidfd, bool now, struct sg_error *e)
{
    struct pollfd ended = {.fd = pidfd, .events = POLLIN};

    for (int i = 0; i < 1 + now; i++) {
        if (syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, NULL, 0) < 0 && errno != ESRCH)
            return err_errno(e, "tell the server to end");
        if (poll(&ended, 1, i == 0 && now ? 100 : 0) > 0) /* two at once would count as one */
            break;
    }
    while (poll(&ended, 1, -1) < 0)
        if (errno != EINTR)
            return err_errno(e, "wait for the server's end");
    return 0;
}

static void tell_end(const struct drain_options *o, const char *state, uint64_t pid, uint64_t ns)
{
    AUTO(strbuf_done) struct strbuf out = strbuf_upto(4096);
    struct json j = {.out = &out};

    if (!o->json) {
        printf("The server has ended after %.1f s.\n", (double)ns / 1e9);
        return;
    }
    jw_object_begin(&j);
    jw_string(jw_key(&j, "state"), state);
    jw_u64(jw_key(&j, "pid"), pid);
    jw_bool(jw_key(&j, "ended"), true);
    jw_u64(jw_key(&j, "milliseconds"), ns / 1000000);
    jw_object_end(&j);
    puts(out.buf);
}

static int drain(const struct drain_options *o)
{
    AUTO(close_p) int pidfd = -1;
    char state[STATE_DIR_MAX];
    struct sg_error e = {0};
    uint64_t pid = 0, began = clock_ns();
    int r = state_dir_find(o->state, state, &e);

    if (r == 0)
        r = find_server(state, &pidfd, &pid, &e);
    if (r == 0 && !o->json)
        printf("The server, process %llu, %s. Its log says more.\n", (unsigned long long)pid,
               o->now ? "ends now"
                      : "drains: it takes no new work, and ends when all requests are answered");
    fflush(stdout);
    if (r == 0)
        r = end_server(pidfd, o->now, &e);
    if (r < 0) {
        ui_error("%s", e.message);
        return r == -ESRCH ? EXIT_NONE : CLI_EXIT_SETUP;
    }
    tell_end(o, state, pid, clock_ns() - began);
    return 0;
}

int cmd_drain(int argc, char **argv)
{
    struct drain_options o = {0};
    struct sg_error e = {0};
    char **rest;

    if (cli_parse(&drain_syntax, argc, argv, &o, &rest, &e) < 0)
        return ui_usage("drain", e.message);
    if (!o.help)
        return drain(&o);
    printf("Usage: sandglass drain [OPTION]...\n\n"
           "Ends the server of this machine in order: it takes no new work, and requests under way "
           "have\ndrain_timeout to finish. Waits until the server has ended.\n\n");
    cli_print_options(stdout, &drain_syntax);
    return 0;
}
