/* How a context gets a kernel, and what happens when it loses it. See kernels.h. */
#include <stdio.h>
#include <string.h>

#include "inside/agent/kernels.h"
#include "inside/agent/launch.h"

#define NOTE_ENDED   "the kernel ended between two cells: its variables are gone"
#define NOTE_CLEARED "the sandbox was rewound: the kernel's variables are gone"
#define NOTE_NO_COPY "the copy of the kernel did not start: its variables are gone"
#define NOTE_BROKE \
    "the kernel broke its protocol after a cell and was killed: its variables are gone"

static void give_up(struct context *c, int r, const char *why)
{
    struct sg_error e = {0};

    countdown_stop(&c->start);
    c->failures = c->refusals = 0;
    err_set(&e, r == -EAGAIN ? SG_ERR_LIMIT : SG_ERR_UNSUPPORTED, r,
            "cannot start the %s kernel: %s", c->language.name, why);
    context_fail_waiting(c, &e);
}

static void start_failed(struct context *c, const char *why)
{
    give_up(c, -EIO, why);
}

static void attach(struct context *c, struct kernel *k)
{
    c->kernel = k;
    k->context = c;
    if (k->packets.ready)
        kernel_is_ready(k);
}

static void start_cold(struct context *c)
{
    struct sg_error e = {0};
    struct kernel *k = kernel_launch(c, &e);
    bool no_room = !k && e.code == -EAGAIN;

    if (k)
        attach(c, k);
    else if (no_room && ++c->refusals < KERNEL_REFUSALS_MAX)
        countdown_start(&c->again, KERNEL_AGAIN_MS); /* the processes of the last kernel may still
                                                      * be ending */
    else
        give_up(c, no_room ? -EAGAIN : -EIO, e.message);
}

static void on_again(struct countdown *timer)
{
    start_cold(CONTAINER_OF(timer, struct context, again));
}

static void take_twin(struct context *c, struct kernel *k)
{
    struct sg_error e = {0};

    if (kernel_furnish(k, c, &e) < 0) {
        kernel_free(k);
        start_failed(c, e.message);
        return;
    }
    attach(c, k);
}

/* ---- the line -------------------------------------------------------------------------------- */

static struct context *next_that_wants(struct agent *a)
{
    return LIST_FIND(struct context, c, &a->kernels.contexts, link, c->wants_twin);
}

/* Starts a cold kernel for the first context that waits for a twin. */
static void serve_cold(struct agent *a)
{
    struct context *c = next_that_wants(a);

    if (!c)
        return;
    c->wants_twin = false;
    start_cold(c);
}

/* Asks the warden for one kernel at a time. */
static void ask(struct agent *a)
{
    struct kernels *t = &a->kernels;

    while (t->asked == ASKED_NOT && next_that_wants(a)) {
        if (line_ask(&a->line) < 0) {
            serve_cold(a);
            continue;
        }
        t->asked = ASKED;
        countdown_start(&t->answer, KERNEL_TWIN_MS);
    }
}

static void answered(struct agent *a)
{
    a->kernels.asked = ASKED_NOT;
    countdown_stop(&a->kernels.answer);
}

static void on_no_answer(struct countdown *timer)
{
    struct agent *a = CONTAINER_OF(timer, struct agent, kernels.answer);

    a->kernels.asked = ASKED_LATE;
    while (next_that_wants(a))
        serve_cold(a);
}

void no_kernel_came(struct agent *a)
{
    answered(a);
    serve_cold(a);
    ask(a);
}

/* Prepares all that the spare's first cell will need. If a part fails now, it is done then. */
static void keep_spare(struct agent *a, struct kernel *k)
{
    struct kernel_language python;

    a->kernels.spare = k;
    kernel_queue(k, 'B', "python");
    kernel_settle(k, NULL);
    if (kernel_language_find("python", &python, NULL) == 0)
        context_default(a, &python, NULL);
}

void kernel_came(struct agent *a, pid_t pid, pid_t was, const int fds[LINE_FDS_MAX])
{
    struct kernels *t = &a->kernels;
    struct kernel *k = kernel_from_twin(a, pid, was, fds);
    struct context *c = next_that_wants(a);

    if (was > 0) { /* a copy of a kernel is no answer to the agent's question */
        if (k)
            kernel_arrives(k);
        return;
    }
    answered(a);
    if (k && c) {
        c->wants_twin = false;
        kernel_queue(k, 'B', c->language.name);
        take_twin(c, k);
    } else if (k && !t->spare) {
        keep_spare(a, k);
    } else if (k) {
        kernel_free(k);
    } else {
        serve_cold(a);
    }
    ask(a);
}

/* ---- starting -------------------------------------------------------------------------------- */

void context_start(struct context *c)
{
    struct agent *a = c->agent;
    struct kernels *t = &a->kernels;

    c->cells = 0;
    c->had_kernel = true;
    countdown_start(&c->start, KERNEL_START_MS);
    /* if a twin failed, the next try is cold */
    if (c->failures > 0 || c->language.program == PROGRAM_NODE) {
        start_cold(c);
    } else if (t->spare && c->language.program == PROGRAM_PYTHON) {
        struct kernel *k = t->spare;

        t->spare = NULL;
        take_twin(c, k);
    } else if (a->config->twins && t->asked != ASKED_LATE) {
        c->wants_twin = true;
        ask(a);
    } else {
        start_cold(c);
    }
}

void context_drop_kernel(struct context *c)
{
    countdown_stop(&c->start);
    countdown_stop(&c->again);
    c->wants_twin = false;
    if (c->kernel)
        kernel_free(c->kernel);
    c->kernel = NULL;
    kernels_hold_check(c->agent);
}

void context_end(struct context *c, enum kernel_end how)
{
    context_drop_kernel(c);
    context_end_waiting(c, how);
    context_cell_over(c, how, 0);
}

static void on_start_over(struct countdown *timer)
{
    struct context *c = CONTAINER_OF(timer, struct context, start);
    char why[64];

    if (c->kernel && c->kernel->was > 0)
        c->note = NOTE_NO_COPY;
    context_drop_kernel(c);
    snprintf(why, sizeof(why), "it was not ready after %d s", KERNEL_START_MS / 1000);
    start_failed(c, why);
}

void context_start_init(struct context *c)
{
    countdown_init(&c->start, &c->agent->loop, on_start_over);
    countdown_init(&c->again, &c->agent->loop, on_again);
}

/* ---- ready, over, lost ----------------------------------------------------------------------- */

void kernel_is_ready(struct kernel *k)
{
    struct context *c = k->context;

    if (!c)
        return;
    countdown_stop(&c->start);
    c->failures = c->refusals = 0;
    kernels_hold_check(c->agent);
    context_advance(c);
}

static void start_again(struct context *c, const char *why)
{
    context_drop_kernel(c);
    if (++c->failures >= KERNEL_STARTS_MAX) {
        start_failed(c, why);
        return;
    }
    /* Waits before the next try: if processes or memory ran out, others have to end first. */
    countdown_start(&c->start, KERNEL_START_MS);
    countdown_start(&c->again, KERNEL_AGAIN_MS << (c->failures - 1));
}

/* The kernel ended before it was ready. */
static void died_at_start(struct context *c, struct kernel *k)
{
    struct sg_error e = {0};
    char words[200], why[300], status[32] = "";

    kernel_last_words(k, words, sizeof(words));
    if (kernel_exit_code(k) != KERNEL_CODE_UNKNOWN)
        snprintf(status, sizeof(status), " with status %u", kernel_exit_code(k));
    snprintf(why, sizeof(why), "it ended%s before it was ready%s%s", status, words[0] ? ": " : "",
             words);
    if (k->report_fd >= 0 && launch_result(k->report_fd, &e) < 0) {
        context_drop_kernel(c);
        start_failed(c, e.message);
    } else {
        start_again(c, why);
    }
}

/* Lets go of a kernel that belongs to no context. */
static void let_go(struct kernel *k)
{
    if (k->agent->kernels.spare == k)
        k->agent->kernels.spare = NULL;
    kernel_leaves(k);
    kernel_free(k);
}

/* Whether the kernel never had any state. */
static bool is_new(const struct kernel *k)
{
    return !k->packets.ready && k->was == 0;
}

void kernel_is_over(struct kernel *k)
{
    struct context *c = k->context;
    uint32_t code = kernel_exit_code(k);

    if (!c)
        let_go(k);
    else if (is_new(k))
        died_at_start(c, k);
    else
        context_lose_kernel(c, KERNEL_DIED, code, NOTE_ENDED);
}

void kernel_is_broken(struct kernel *k)
{
    struct context *c = k->context;

    if (!c)
        let_go(k);
    else if (is_new(k))
        start_again(c, "it broke its protocol");
    else
        context_lose_kernel(c, KERNEL_BROKE, 0, NOTE_BROKE);
}

void context_lose_kernel(struct context *c, enum kernel_end how, uint32_t code, const char *note)
{
    bool was_busy = c->busy, told = c->running != NULL;
    bool knew = c->cells > 0;

    context_drop_kernel(c);
    if (!told && knew)
        c->note = note;
    if (!was_busy) {
        context_advance(c);
        return;
    }
    context_start(c);
    context_cell_over(c, how, code);
}

void kernels_init(struct agent *a)
{
    a->kernels = (struct kernels){0};
    countdown_init(&a->kernels.answer, &a->loop, on_no_answer);
}

/* Does not signal the kernels and their sessions one by one: the caller is about to kill every
 * process. */
void kernels_clear(struct agent *a)
{
    struct kernels *t = &a->kernels;

    if (t->spare)
        t->spare->dead = true;
    LIST_EACH(struct kernel, k, &t->arrived, link)
        k->dead = true;
    if (t->spare)
        kernel_free(t->spare);
    t->spare = NULL;
    kernels_arrived_free(a);
    LIST_EACH(struct context, c, &t->contexts, link) {
        if (c->kernel)
            c->kernel->dead = true;
        if (c->cells > 0 && !c->running)
            c->note = NOTE_CLEARED;
        context_end(c, KERNEL_RESTARTED);
        c->failures = 0;
        c->cells = 0;
    }
}

/* Called at the end of the agent, which ends every process. There are no executions any more. */
void kernels_done(struct agent *a)
{
    struct kernels *t = &a->kernels;

    countdown_stop(&t->answer);
    loop_task_cancel(&t->release);
    if (t->spare)
        kernel_free(t->spare);
    kernels_arrived_free(a);
    LIST_EACH(struct context, c, &t->contexts, link) {
        context_drop_kernel(c);
        countdown_stop(&c->limit);
        countdown_stop(&c->grace);
        context_free(c);
    }
}
