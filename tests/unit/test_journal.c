/* The journal: what one front leaves is what the next one reads, wherever the first was killed. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "front/core/journal.h"
#include "front/core/lifecycle.h"
#include "tap.h"

#define TENANT "tttttttttttttttttttt"
#define ONE    "11111111111111111111"
#define TWO    "22222222222222222222"
#define OVER   "33333333333333333333"

static struct front here;
static int file;

static void begin(void)
{
    file = memfd_create("journal", MFD_CLOEXEC);
    journal_open(&here, dup(file));
}

/* The next front opens it. */
static void next(void)
{
    journal_open(&here, dup(file));
}

static void end(void)
{
    journal_settle();
    close(file);
}

static off_t size(void)
{
    struct stat st;

    return fstat(file, &st) == 0 ? st.st_size : -1;
}

static struct sandbox_log log_of(const char *id)
{
    struct sandbox_log l = {.ring = NULL};

    snprintf(l.id, sizeof(l.id), "%s", id);
    return l;
}

TEST(logs_and_samples_are_there_again)
{
    struct sandbox_log one = log_of(ONE), two = log_of(TWO), none = {.ring = NULL}, got;
    struct sandbox_metrics metrics = {.ring = NULL};
    const struct metric m = {.ms = 5, .cpu_pct = 1.5f, .memory_used = 7};

    begin();
    sandbox_log_add(&one, LOG_WARN, FAULT_SANDBOX, 3, "hello %d", 1);
    sandbox_log_output(&two, 9, "stderr", "a\nb\n", 4);
    sandbox_log_add(&none, LOG_INFO, FAULT_SANDBOX, 0, "nobody's");
    journal_metric(ONE, &m);
    next();
    got = log_of("");
    journal_give(ONE, &got, &metrics);
    EXPECT(sandbox_log_count(&got) == 1);
    const struct log_entry *e = sandbox_log_get(&got, 0);
    EXPECT_STR(e->text, "hello 1");
    EXPECT(e->level == LOG_WARN && e->fault == FAULT_SANDBOX && e->pid == 3 && !e->stream);
    EXPECT(e->ms == sandbox_log_get(&one, 0)->ms);
    EXPECT(sandbox_metrics_count(&metrics) == 1 && sandbox_metrics_get(&metrics, 0)->ms == 5);
    EXPECT(sandbox_metrics_get(&metrics, 0)->memory_used == 7);
    /* It goes on, and is whole for the one after that. */
    sandbox_log_add(&got, LOG_INFO, FAULT_SANDBOX, 0, "and more");
    sandbox_log_done(&got);
    journal_settle();
    next();
    journal_give(ONE, &got, NULL);
    EXPECT(sandbox_log_count(&got) == 2);
    sandbox_log_done(&got);
    journal_give(TWO, &got, NULL);
    EXPECT(sandbox_log_count(&got) == 2);
    EXPECT_STR(sandbox_log_get(&got, 1)->stream, "stderr");
    sandbox_log_done(&got);
    sandbox_log_done(&one);
    sandbox_log_done(&two);
    sandbox_log_done(&none);
    sandbox_metrics_done(&metrics);
    end();
}

/* The front before is another process, whose memory is gone. */
static void end_one_elsewhere(void)
{
    struct sandbox_log log = log_of(OVER);
    const struct sandbox_end how = {.why = END_MEMORY};

    if (fork() == 0) {
        sandbox_log_add(&log, LOG_INFO, FAULT_SANDBOX, 0, "last words");
        ended_logs_keep(TENANT, OVER, &how, &log);
        _exit(0);
    }
    wait(NULL);
}

TEST(logs_of_ended_ones_too)
{
    begin();
    end_one_elsewhere();
    EXPECT(ended_logs_log(TENANT, OVER) == NULL);
    off_t before = size();
    next();
    EXPECT(size() == before);
    const struct sandbox_log *got = ended_logs_log(TENANT, OVER);
    EXPECT(got && sandbox_log_count(got) == 1);
    EXPECT_STR(sandbox_log_get(got, 0)->text, "last words");
    EXPECT(ended_logs_end(TENANT, OVER)->why == END_MEMORY);
    end();
}

/* Wherever its writer was killed: what was whole is read, and what is cut off is gone. */
TEST(a_cut_record_is_left_out)
{
    struct sandbox_log one = log_of(ONE), got = log_of("");

    begin();
    sandbox_log_add(&one, LOG_INFO, FAULT_SANDBOX, 0, "first");
    off_t whole = size();
    sandbox_log_add(&one, LOG_INFO, FAULT_SANDBOX, 0, "second");
    for (off_t cut = size() - 1; cut >= whole; cut--) {
        EXPECT(ftruncate(file, cut) == 0);
        next();
        EXPECT(size() == whole);
        journal_give(ONE, &got, NULL);
        EXPECT(sandbox_log_count(&got) == 1);
        sandbox_log_done(&got);
        got = log_of("");
    }
    sandbox_log_done(&one);
    end();
}

TEST(nonsense_is_not_read)
{
    static const char junk[8192] = "no journal";
    struct sandbox_log got = log_of(ONE);

    begin();
    EXPECT(pwrite(file, junk, sizeof(junk), 0) == (ssize_t)sizeof(junk));
    next(); /* says so, and goes on without */
    sandbox_log_add(&got, LOG_INFO, FAULT_SANDBOX, 0, "not kept");
    EXPECT(size() == (off_t)sizeof(junk));
    sandbox_log_done(&got);
    end();
}

TEST(it_stays_small)
{
    struct sandbox_spec spec;
    static char flood[100000];
    struct sandbox_log got = log_of("");
    struct stat st;

    begin();
    sandbox_spec_init(&spec);
    struct sandbox *b = sandbox_new(&here, TWO, &spec);
    sandboxes_add(b);
    memset(flood, 'x', sizeof(flood));
    for (size_t i = 80; i < sizeof(flood); i += 80)
        flood[i] = '\n';
    for (int i = 0; i < 300; i++)
        sandbox_log_output(&b->log, 1, "stdout", flood, sizeof(flood));
    sandbox_log_add(&b->log, LOG_INFO, FAULT_SANDBOX, 0, "the last");
    EXPECT(fstat(file, &st) == 0 && st.st_blocks * 512 < 12 * 1024 * 1024);
    EXPECT(st.st_size > 24 * 1024 * 1024);
    next();
    journal_give(TWO, &got, NULL);
    EXPECT(sandbox_log_count(&got) == sandbox_log_count(&b->log));
    EXPECT_STR(sandbox_log_get(&got, sandbox_log_count(&got) - 1)->text, "the last");
    sandbox_log_done(&got);
    sandboxes_remove(b);
    sandbox_unref(b);
    end();
}

TAP_MAIN
