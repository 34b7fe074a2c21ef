/* The log of a sandbox stays within its bounds and keeps the newest. */
#include <stdio.h>
#include <string.h>

#include "front/core/log.h"
#include "front/core/ended_logs.h"
#include "tap.h"

TEST(lines)
{
    struct sandbox_log l = {0};
    const struct log_entry *e;

    sandbox_log_add(&l, LOG_INFO, FAULT_SANDBOX, 0, "created %d", 1);
    sandbox_log_output(&l, 7, "stdout", "one\ntwo\n\nthree", 14);
    sandbox_log_output(&l, 7, "stderr", "oops\n", 5);
    EXPECT(sandbox_log_count(&l) == 5);
    e = sandbox_log_get(&l, 0);
    EXPECT(strcmp(e->text, "created 1") == 0 && e->fault == FAULT_SANDBOX && !e->stream);
    e = sandbox_log_get(&l, 2);
    EXPECT(strcmp(e->text, "two") == 0 && e->pid == 7 && strcmp(e->stream, "stdout") == 0 &&
           e->fault == FAULT_CODE && e->level == LOG_INFO);
    EXPECT(sandbox_log_get(&l, 4)->level == LOG_WARN);
    sandbox_log_output(&l, 7, "pty", "typed\r\n\r\n", 9);
    EXPECT(sandbox_log_count(&l) == 6);
    EXPECT_STR(sandbox_log_get(&l, 5)->text, "typed");
    sandbox_log_done(&l);
}

TEST(bounds)
{
    struct sandbox_log l = {0};
    static char flood[SANDBOX_LOG_BYTES * 3];

    memset(flood, 'x', sizeof(flood));
    sandbox_log_output(&l, 1, "stdout", flood, sizeof(flood));
    EXPECT(sandbox_log_count(&l) == 1 && sandbox_log_get(&l, 0)->len == SANDBOX_LOG_LINE);
    for (size_t i = 100; i < sizeof(flood); i += 100)
        flood[i] = '\n';
    sandbox_log_output(&l, 1, "stdout", flood, sizeof(flood));
    EXPECT(l.bytes <= SANDBOX_LOG_BYTES);
    for (int i = 0; i < 20000; i++)
        sandbox_log_add(&l, LOG_DEBUG, FAULT_SANDBOX, 0, "entry %d", i);
    EXPECT(l.bytes <= SANDBOX_LOG_BYTES && sandbox_log_count(&l) > 100);
    EXPECT(strcmp(sandbox_log_get(&l, sandbox_log_count(&l) - 1)->text, "entry 19999") == 0);
    EXPECT(strncmp(sandbox_log_get(&l, 0)->text, "entry ", 6) == 0);
    sandbox_log_done(&l);
    EXPECT(sandbox_log_count(&l) == 0);
}

TEST(levels)
{
    for (int i = 0; i < LOG_LEVEL_MAX_; i++)
        EXPECT(log_level_parse(log_level_name((enum log_level)i)) == (enum log_level)i);
    EXPECT(log_level_parse("loud") == LOG_LEVEL_MAX_);
}

/* A sandbox of a tenant that ends with so much in its log. */
static void end_one(const char *tenant, unsigned number, size_t len)
{
    static char text[SANDBOX_LOG_BYTES];
    struct sandbox_end end = {.why = END_MACHINE};
    struct sandbox_log log = {0};
    char id[ID_LEN + 1];

    memset(text, 'x', sizeof(text));
    for (size_t i = 100; i < sizeof(text); i += 100)
        text[i] = '\n';
    snprintf(id, sizeof(id), "sandbox%013u", number);
    sandbox_log_output(&log, 1, "stdout", text, len);
    ended_logs_keep(tenant, id, &end, &log);
    EXPECT(log.n == 0);
}

/* One that ends sandboxes by the hundred does not make others' logs go. */
TEST(logs_of_ended_ones_have_shares)
{
    end_one("quiet000000000000000", 1, 100);
    for (unsigned i = 2; i < 100; i++)
        end_one("noisy000000000000000", i, SANDBOX_LOG_BYTES);
    EXPECT(ended_logs_log("quiet000000000000000", "sandbox0000000000001") != NULL);
    EXPECT(ended_logs_log("noisy000000000000000", "sandbox0000000000002") == NULL);
    EXPECT(ended_logs_log("noisy000000000000000", "sandbox0000000000099") != NULL);
    EXPECT(ended_logs_log("noisy000000000000000", "sandbox0000000000001") == NULL);
    EXPECT(ended_logs_end("noisy000000000000000", "sandbox0000000000001") == NULL);
    EXPECT(ended_logs_end(NULL, "sandbox0000000000002") == NULL);
    const struct sandbox_end *end = ended_logs_end(NULL, "sandbox0000000000001");
    EXPECT(end && sandbox_end_is_news(end) &&
           strcmp(sandbox_end_text(end), "the machine ran out of memory") == 0);
    /* All of them together have a bound too: who holds most gives. */
    for (unsigned i = 100; i < 100 + 40 * 40; i++) {
        char tenant[ID_LEN + 1];

        snprintf(tenant, sizeof(tenant), "tenant%014u", i % 40);
        end_one(tenant, i, SANDBOX_LOG_BYTES);
    }
    EXPECT(ended_logs_log("quiet000000000000000", "sandbox0000000000001") != NULL);
    EXPECT(ended_logs_log("tenant00000000000019", "sandbox0000000001699") != NULL);
}

TAP_MAIN
