/* The life of a sandbox in the warden, in every cell of its table, without root. */
#include "tap.h"

#include "life_rig.h"
#include "warden/sandboxes/sandbox_life.h"

TAP_MAIN

#define CHECKPOINT "checkpoint0000000000"

/* What becomes of a sandbox in each state by each event: = it stays in its state, . the event
 * cannot happen, x the sandbox is gone; else the first letter of the next state, or one of those in
 * `letters`. */
/* clang-format off */
static const char letters[] = "MUBRKWFSTPDOE";
static const char *const expected[PHASE_MAX_] = {
    /*             orders       start    frozen saved  fork                end */
    [MAKING]     = "=====" "==" "RBU.xx" "...." "...." "......=" ".E" "=",
    [MOUNTING]   = "=====" "==" "R..R.." "...." "...." "===.=.=" ".E" "E",
    [BRANCHING]  = "=====" "==" "...=.." "...." "...." "=====R=" "RE" "E",
    [RUNNING]    = "FF==F" "KW" "......" "...." "...." "===.=.=" ".." "E",
    [KEEPING]    = "=====" "==" "......" "...." "...." "==R==.R" "RR" "E",
    [REWINDING]  = "=====" "==" "......" "...." "...." "=====R=" "RR" "E",
    [FREEZING]   = "=====" "==" "......" "PSR." "...." "===.=.=" ".." "E",
    [SAVING]     = "=====" "==" "......" "P.RR" "T..." "===.=.=" ".." "E",
    [STOWING]    = "=====" "==" "......" "...." ".xDO" "......=" ".." "=",
    [PAUSED]     = "=SRSS" "==" "......" "..R." "...." "===.=.=" ".." "E",
    [STORED]     = "==OOS" "==" "......" "...." "...." "......." ".." "x",
    [BOOTING]    = "=====" "==" "R.=RDT" "...." "...." "......=" ".." "=",
    [ENDING]     = "....." ".." "......" "...." ".x.." "......=" ".." "=",
};
/* clang-format on */

static struct sandbox *get(struct rig *r)
{
    return sandbox_find(r->s, rig_id(0));
}

static struct order from_checkpoint(void)
{
    struct order o = {.flags = ORDER_STATE};

    snprintf(o.snapshot, sizeof(o.snapshot), CHECKPOINT);
    return o;
}

static void order(struct rig *r, uint32_t op, uint32_t flags)
{
    struct order o = {.flags = flags};

    if (op == ORDER_REWIND)
        o = from_checkpoint();
    if (op == ORDER_CHECKPOINT)
        snprintf(o.snapshot, sizeof(o.snapshot), "another0000000000000");
    rig_order(r, op, 0, o);
    rig_run(r);
}

/* Another sandbox of the tenant has a checkpoint. */
static void make_checkpoint(struct rig *r)
{
    rig_order(r, ORDER_CREATE, 1, (struct order){0});
    rig_run(r);
    rig_order(r, ORDER_CHECKPOINT, 1, from_checkpoint());
    rig_run(r);
    EXPECT(r->last.code == 0);
}

static void pause_everything(void)
{
    fake.no_word = fake.no_root = fake.no_mount = fake.no_news = fake.no_end = fake.never_still =
        true;
    rig_saves_wait = true;
}

static void go_on(void)
{
    fake.no_word = fake.no_root = fake.no_mount = fake.no_news = fake.no_end = fake.never_still =
        false;
    rig_saves_wait = false;
}

static struct order with_volume(void)
{
    return (struct order){.n_volumes = 1, .volumes = {{.target = "/mnt"}}};
}

/* Brings sandbox 0 into a state, by orders alone. other: STOWING, on its way to a fresh start;
 * MAKING, from a checkpoint. mounts: it has a volume. */
static void bring_with(struct rig *r, enum phase phase, bool other, bool mounts)
{
    bool branches = phase == BRANCHING || (phase == MAKING && other);

    other = other && phase == STOWING;

    if (branches || phase == REWINDING)
        make_checkpoint(r);
    if (phase == MAKING || phase == BRANCHING)
        pause_everything();
    if (phase == BRANCHING)
        fake.no_word = false;
    fake.no_mount = phase == MOUNTING;
    rig_order(r, ORDER_CREATE, 0,
              branches                      ? from_checkpoint()
              : mounts || phase == MOUNTING ? with_volume()
                                            : (struct order){0});
    rig_run(r);
    if (phase == PAUSED || other)
        order(r, ORDER_PAUSE, 0);
    if (phase == STORED || phase == BOOTING)
        order(r, ORDER_PAUSE, ORDER_FILES_ONLY);
    if (phase == FREEZING || phase == KEEPING || phase == REWINDING || phase == ENDING ||
        phase == BOOTING || phase == SAVING || phase == STOWING)
        pause_everything();
    if (phase == FREEZING)
        order(r, ORDER_PAUSE, 0);
    if (phase == KEEPING)
        order(r, ORDER_CHECKPOINT, 0);
    if (phase == REWINDING)
        order(r, ORDER_REWIND, 0);
    if (phase == BOOTING)
        order(r, ORDER_RESUME, 0);
    if (phase == SAVING || phase == STOWING) {
        fake.never_still = false;
        order(r, other ? ORDER_RESUME : ORDER_PAUSE, ORDER_FILES_ONLY);
    }
    if (phase == STOWING)
        rig_saved(true);
    if (phase == ENDING)
        order(r, ORDER_KILL, 0);
    pause_everything();
}

static void bring(struct rig *r, enum phase phase, bool other)
{
    bring_with(r, phase, other, false);
}

/* Events that the tenant pool or the provider's end bring, by what brings them. */
static bool really(struct rig *r, enum phase phase, enum event event)
{
    if (phase != MAKING && phase != BOOTING && phase != STOWING && phase != ENDING)
        return false;
    if (event == ON_NOT_STARTED)
        fake.fails = 1u << FAKE_START;
    if (event == ON_FAILED || (phase == BOOTING && event == ON_UNWANTED))
        fake.fails = 1u << FAKE_CONNECT;
    if ((phase == MAKING && event == ON_UNWANTED) || (phase == STOWING && event == ON_GONE))
        order(r, ORDER_KILL, 0);
    if (event >= ON_STARTED && (event <= ON_UNWANTED || event == ON_FAILED)) {
        fake.no_word = false;
        fake.no_mount = event == ON_TO_MOUNT;
        LIST_EACH(struct tenant_pool, w, &r->s->tenant_pools, link)
            for (uint32_t i = 0; i < w->provider->n; i++)
                if (!w->provider->all[i]->up)
                    fake_signal(w->provider->all[i]->line, true);
        rig_run(r);
        return true;
    }
    if (event == ON_GONE || event == ON_STOWED || event == ON_ANOTHER) {
        fake.no_end = false;
        rig_pass(r, 10);
        return true;
    }
    return false;
}

static void happen(struct rig *r, enum event event)
{
    struct kernel_news news = {.report = -1, .written = -1, .n_kernels = 1};
    struct ticket t = {.seq = ++r->seq, .turn = 1};
    struct order o = {.flags = 0};
    struct sg_error e = {0};
    struct happening h = {.ticket = &t,
                          .order = &o,
                          .news = &news,
                          .ready = true,
                          .e = &e,
                          .fd = -1,
                          .checkpoint = checkpoint_find(r->s, CHECKPOINT)};

    snprintf(o.snapshot, sizeof(o.snapshot), "other000000000000000");
    if (event == ON_NOT_STARTED || event == ON_FAILED || event == ON_BROKER_GONE)
        h.r = err_set(&e, SG_ERR_INTERNAL, -EIO, "it failed");
    if (event == ON_CHECKPOINT)
        h.fd = memfd_create("note", MFD_CLOEXEC);
    if (event == ON_STARTED || event == ON_DONE)
        h.fd = eventfd(0, EFD_CLOEXEC);
    if (event == ON_END)
        get(r)->ending = END_KILLED;
    sandbox_happens(get(r), event, &h);
}

static bool is_impossible(enum phase phase, enum event event)
{
    return expected[phase][event - 1] == '.';
}

TEST(every_state_and_every_event_is_in_the_table)
{
    for (enum phase p = 0; p < PHASE_MAX_; p++) {
        EXPECT(strlen(expected[p]) == ON_MAX_ - 1);
        EXPECT(phase_rules[p].name != NULL);
        EXPECT(phase_rules[p].told != 0 || p == SAVING);
    }
}

TEST(each_state_is_reached_by_orders)
{
    for (enum phase p = 0; p < PHASE_MAX_; p++) {
        struct rig r;

        rig_open(&r, 0);
        bring(&r, p, false);
        EXPECT(get(&r) && get(&r)->phase == p);
        if (get(&r) && get(&r)->phase != p)
            printf("# %s, not %s\n", phase_rules[get(&r)->phase].name, phase_rules[p].name);
        EXPECT(r.s->impossible == 0);
        go_on();
        rig_close(&r);
    }
    EXPECT(fake.instances == 0 && fake.providers == 0 && rig_snapshots == 0);
}

static void try_cell(enum phase p, enum event v)
{
    char want = expected[p][v - 1];
    enum phase now;
    struct rig r;
    char got;

    rig_open(&r, 0);
    if (v == ON_REWIND && p != BRANCHING && p != REWINDING)
        make_checkpoint(&r);
    bring_with(&r, p, v == ON_ANOTHER || v == ON_STARTED_BRANCH,
               v == ON_TO_MOUNT || v == ON_MOUNTED);
    if (!get(&r) || get(&r)->phase != p) {
        printf("# %s was not reached for event %d\n", phase_rules[p].name, v);
        EXPECT(!"the state was reached");
        rig_close(&r);
        return;
    }
    if (is_impossible(p, v) || !really(&r, p, v))
        happen(&r, v);
    now = get(&r) ? get(&r)->phase : PHASE_MAX_;
    got = now == PHASE_MAX_ ? 'x' : now != p ? letters[now] : is_impossible(p, v) ? '.' : '=';
    if (got != want || (r.s->impossible > 0) != (want == '.')) {
        printf("# %s, event %d: '%c', not '%c'\n", phase_rules[p].name, v, got, want);
        EXPECT(!"the next state is right");
    }
    go_on();
    rig_close(&r);
}

TEST(each_event_in_each_state_leads_where_it_should)
{
    for (enum phase p = 0; p < PHASE_MAX_; p++)
        for (enum event v = 1; v < ON_MAX_; v++)
            try_cell(p, v);
    EXPECT(fake.instances == 0 && fake.providers == 0 && rig_snapshots == 0);
    EXPECT(rig_volume.users == 0);
}

TEST(a_volume_that_cannot_be_attached_ends_the_start)
{
    struct rig r;

    rig_open(&r, 0);
    fake.fails = 1u << FAKE_ATTACH;
    rig_order(&r, ORDER_CREATE, 0, with_volume());
    rig_run(&r);
    EXPECT(r.last.code == -EINVAL && r.last.error_kind == SG_ERR_INVALID);
    rig_pass(&r, 10);
    EXPECT(!get(&r) && rig_volume.users == 0);
    /* The agent does not answer. */
    fake.no_mount = true;
    uint64_t late = rig_order(&r, ORDER_CREATE, 0, with_volume());
    rig_run(&r);
    EXPECT(get(&r)->phase == MOUNTING && r.answers[late] == 0);
    rig_pass(&r, 6000);
    EXPECT(r.answers[late] == 1 && r.last.code < 0);
    fake.no_mount = false;
    rig_close(&r);
    EXPECT(fake.instances == 0 && rig_volume.users == 0);
}

TEST(a_stored_sandbox_keeps_its_volumes_and_mounts_them_when_it_boots)
{
    struct rig r;

    rig_open(&r, 0);
    bring_with(&r, STORED, false, true);
    go_on();
    EXPECT(rig_volume.users == 1);
    fake.fails = 1u << FAKE_ATTACH;
    order(&r, ORDER_RESUME, 0);
    rig_pass(&r, 10);
    EXPECT(r.last.code < 0 && get(&r)->phase == STORED && rig_volume.users == 1);
    order(&r, ORDER_RESUME, 0);
    EXPECT(r.last.code == 0 && get(&r)->phase == RUNNING);
    rig_close(&r);
    EXPECT(rig_volume.users == 0);
}

TEST(a_stored_sandbox_whose_agent_ends_while_it_mounts_is_stored_again)
{
    for (int all = 0; all < 2; all++) {
        struct rig r;

        rig_open(&r, 0);
        bring_with(&r, STORED, false, true);
        go_on();
        fake.no_mount = true;
        uint64_t resume = rig_order(&r, ORDER_RESUME, 0, (struct order){0});
        rig_run(&r);
        EXPECT(get(&r)->phase == BOOTING && r.answers[resume] == 0);
        if (all)
            sandboxes_holder_gone(r.s, get(&r)->tenant_pool);
        else
            fake_signal(get(&r)->instance->process, true);
        rig_run(&r);
        EXPECT(r.answers[resume] == 1 && r.last.code < 0);
        fake.no_mount = false;
        rig_pass(&r, 10);
        EXPECT(get(&r) && get(&r)->phase == STORED && !get(&r)->ending);
        order(&r, ORDER_RESUME, 0);
        EXPECT(r.last.code == 0 && get(&r)->phase == RUNNING);
        rig_close(&r);
    }
    EXPECT(fake.instances == 0 && rig_volume.users == 0);
}

TEST(a_new_front_gets_no_channel_to_a_sandbox_that_mounts_at_a_boot)
{
    struct rig r;

    rig_open(&r, 0);
    bring_with(&r, STORED, false, true);
    go_on();
    fake.no_mount = true;
    order(&r, ORDER_RESUME, 0);
    EXPECT(get(&r)->phase == BOOTING && get(&r)->instance);
    fake.fails = 1u << FAKE_CONNECT;
    sandboxes_introduce(r.s);
    EXPECT(get(&r)->ending == 0 && fake.fails != 0);
    fake.fails = 0;
    go_on();
    rig_close(&r);
    EXPECT(fake.instances == 0 && rig_volume.users == 0);
}

TEST(open_files_are_carried_before_the_root_is_made)
{
    for (int well = 0; well < 2; well++) {
        struct rig r;

        rig_open(&r, 0);
        rig_order(&r, ORDER_CREATE, 0, (struct order){0});
        rig_run(&r);
        fake.open_files = rig_saves_wait = true;
        uint64_t keep = rig_order(&r, ORDER_CHECKPOINT, 0, from_checkpoint());
        rig_run(&r);
        EXPECT(!list_empty(&rig_workers) && r.answers[keep] == 0 && get(&r)->phase == KEEPING);
        /* An agent that says it has a root which it was never sent is not believed. */
        sandbox_happens(get(&r), ON_ROOTED, &(struct happening){.r = 0});
        rig_run(&r);
        EXPECT(r.answers[keep] == 0 && get(&r)->phase == KEEPING);
        rig_worker_ends(well);
        rig_run(&r);
        EXPECT(r.answers[keep] == 1 && get(&r)->phase == RUNNING);
        EXPECT(r.last.code == (well ? 0 : -ENOSPC));
        rig_close(&r);
    }
    EXPECT(fake.instances == 0 && fake.providers == 0 && rig_snapshots == 0);
}

TEST(a_worker_is_cancelled_with_its_sandbox)
{
    struct rig r;

    rig_open(&r, 0);
    rig_order(&r, ORDER_CREATE, 0, (struct order){0});
    rig_run(&r);
    fake.open_files = rig_saves_wait = true;
    uint64_t keep = rig_order(&r, ORDER_CHECKPOINT, 0, from_checkpoint());
    rig_run(&r);
    EXPECT(!list_empty(&rig_workers));
    order(&r, ORDER_KILL, 0);
    rig_run(&r);
    EXPECT(list_empty(&rig_workers) && r.answers[keep] == 1);
    rig_close(&r);
}

TEST(orders_wait_for_the_job_under_way_and_are_answered_once)
{
    struct rig r;

    rig_open(&r, 0);
    rig_order(&r, ORDER_CREATE, 0, (struct order){0});
    rig_run(&r);
    rig_saves_wait = true;
    rig_order(&r, ORDER_SNAPSHOT, 0, (struct order){.snapshot = "snapshot000000000000"});
    uint64_t pause = rig_order(&r, ORDER_PAUSE, 0, (struct order){0});
    uint64_t resume = rig_order(&r, ORDER_RESUME, 0, (struct order){0});
    rig_run(&r);
    EXPECT(r.answers[pause] == 0 && get(&r)->phase == SAVING);
    rig_saves_wait = false;
    rig_run(&r);
    EXPECT(r.answers[pause] == 1 && r.answers[resume] == 1 && get(&r)->phase == RUNNING);
    rig_close(&r);
}

TEST(a_boot_that_fails_keeps_no_share_of_the_memory)
{
    struct rig r;

    rig_open(&r, 0);
    bring(&r, STORED, false);
    go_on();
    EXPECT(r.s->budget.reserved == 0);
    fake.fails = 1u << FAKE_START;
    order(&r, ORDER_RESUME, 0);
    EXPECT(r.last.code < 0 && get(&r)->phase == STORED && r.s->budget.reserved == 0);
    order(&r, ORDER_RESUME, 0);
    EXPECT(r.last.code == 0 && get(&r)->phase == RUNNING);
    rig_close(&r);
}

TEST(a_start_that_linux_refuses_is_the_servers_fault)
{
    struct rig r;

    rig_open(&r, 0);
    fake.fails = 1u << FAKE_START;
    order(&r, ORDER_CREATE, 0);
    EXPECT(r.last.code == -ENOENT && r.last.error_kind == SG_ERR_INTERNAL && !get(&r));
    bring(&r, STORED, false);
    go_on();
    fake.fails = 1u << FAKE_START;
    order(&r, ORDER_RESUME, 0);
    EXPECT(r.last.code == -ENOENT && r.last.error_kind == SG_ERR_INTERNAL);
    rig_close(&r);
}

TEST(a_spawner_that_ends_is_replaced_once_for_who_waits)
{
    struct rig r;

    rig_open(&r, 0);
    fake.fails = 1u << FAKE_BROKEN;
    order(&r, ORDER_CREATE, 0);
    EXPECT(r.last.code == 0 && get(&r)->phase == RUNNING);
    rig_close(&r);
    rig_open(&r, 0);
    fake.no_spawner = true;
    order(&r, ORDER_CREATE, 0);
    EXPECT(r.last.code == -EPIPE && r.last.error_kind == SG_ERR_LIMIT && !get(&r));
    fake.no_spawner = false;
    rig_close(&r);
}

TEST(a_sandbox_that_nobody_knows_ends_with_the_front)
{
    struct rig r;

    rig_open(&r, 0);
    bring(&r, MAKING, false);
    rig_front_dies(&r);
    EXPECT(get(&r)->ending == END_KILLED);
    go_on();
    fake_signal(LIST_FIRST(struct tenant_pool, &r.s->tenant_pools, link)->provider->all[0]->line,
                true);
    rig_run(&r);
    EXPECT(!get(&r) && r.n_ended == 0);
    rig_close(&r);
}

/* Its end may take a while, or wait for a job. */
TEST(a_sandbox_that_is_ending_takes_no_orders)
{
    static const enum phase phases[] = {MAKING, STOWING, BOOTING, ENDING};
    static const uint32_t refused[] = {ORDER_DEADLINE, ORDER_NOTE,       ORDER_PAUSE,
                                       ORDER_RESUME,   ORDER_SNAPSHOT,   ORDER_POLICY,
                                       ORDER_REWIND,   ORDER_CHECKPOINT, ORDER_DIFF};

    for (size_t i = 0; i < ARRAY_SIZE(phases); i++) {
        struct rig r;

        rig_open(&r, 0);
        bring(&r, phases[i], false);
        order(&r, ORDER_KILL, 0);
        EXPECT(get(&r)->phase == phases[i]);
        for (size_t n = 0; n < ARRAY_SIZE(refused); n++) {
            order(&r, refused[n], 0);
            EXPECT(r.answers[r.seq] == 1 && r.last.code == -ENOENT);
        }
        order(&r, ORDER_STATS, 0);
        EXPECT(r.answers[r.seq] == 1 && r.last.code == 0);
        go_on();
        rig_close(&r);
    }
}

TEST(a_sandbox_that_has_ended_is_the_reason_why_its_job_failed)
{
    static const struct {
        enum phase phase;
        bool noticed; /* its end, before the failure */
        enum sg_error_kind kind;
    } cases[] = {
        {BRANCHING, true, SG_ERR_LIMIT},
        {BRANCHING, false, SG_ERR_LIMIT},
        {KEEPING, true, SG_ERR_GONE},
        {KEEPING, false, SG_ERR_GONE},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct rig r;

        rig_open(&r, 0);
        bring(&r, cases[i].phase, false);
        fake_signal(get(&r)->instance->process, true);
        if (cases[i].noticed)
            rig_run(&r);
        else
            happen(&r, ON_FAILED);
        rig_run(&r);
        EXPECT(r.last.code == -ECANCELED && r.last.error_kind == (int32_t)cases[i].kind);
        go_on();
        rig_close(&r);
    }
}

TEST(an_order_that_waits_for_a_sandbox_that_does_not_start_is_answered)
{
    struct rig r;

    rig_open(&r, 0);
    bring(&r, MAKING, false);
    uint64_t pause = rig_order(&r, ORDER_PAUSE, 0, (struct order){0});
    EXPECT(r.answers[pause] == 0);
    really(&r, MAKING, ON_NOT_STARTED);
    EXPECT(!get(&r) && r.answers[pause] == 1 && r.last.code < 0);
    go_on();
    rig_close(&r);
}
