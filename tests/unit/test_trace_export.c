/* Where spans go: addresses and headers, batches, what is tried again and what is given up, what a
 * queue that is full does. The exporter is a fake (trace_rig.h). */
#include "front/telemetry/export.h"
#include "front/telemetry/queue.h"
#include "trace_rig.h"

TAP_MAIN

#define ON "otlp_endpoint = http://127.0.0.1:4318\n"

static void make_spans(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct span *s = span_begin(SPAN_CELL, NULL);

        span_text(s, KEY_SANDBOX, "k3jd8f7s6d5f4g3h2j1k");
        span_end(&s);
    }
}

/* Turns the loop until there are so many posts, or the time is over. */
static void wait_posts(size_t n, unsigned ms)
{
    for (unsigned i = 0; i < ms && rig.n < n; i++) {
        usleep(1000);
        rig_turn();
    }
}

static void leave(void)
{
    rig_configure("");
    rig_forget();
    EXPECT(queue_first() == queue_next());
}

/* ---- where ----------------------------------------------------------------------------------- */

TEST(addresses_and_headers)
{
    static const struct {
        const char *settings, *url, *headers;
    } table[] = {
        {"otlp_endpoint = http://c:4318\n", "http://c:4318/v1/traces", ""},
        {"otlp_endpoint = http://c:4318/\n", "http://c:4318/v1/traces", ""},
        {"otlp_endpoint = https://c/v1/traces\n", "https://c/v1/traces", ""},
        {"otlp_endpoint = https://c/otlp\n", "https://c/otlp/v1/traces", ""},
        {"otlp_endpoint = https://c/otlp?key=1\n", "https://c/otlp/v1/traces?key=1", ""},
        {ON "otlp_headers = a=b\n", "http://127.0.0.1:4318/v1/traces", "a: b\n"},
        {ON "otlp_headers = Authorization=Basic%20eDp5==, x-b = 1%2C2 ,,bad,=v,q r=1,z=%0d%0ai\n",
         "http://127.0.0.1:4318/v1/traces", "Authorization: Basic eDp5==\nx-b: 1,2\n"},
        {ON "otlp_headers = a=1,b=2,c=3,d=4,e=5,f=6,g=7,h=8,i=9\n",
         "http://127.0.0.1:4318/v1/traces", "a: 1\nb: 2\nc: 3\nd: 4\ne: 5\nf: 6\ng: 7\nh: 8\n"},
        {ON "otlp_headers = a=100%,b=%4,c=%zz\n", "http://127.0.0.1:4318/v1/traces",
         "a: 100%\nb: %4\nc: %zz\n"},
        {"langfuse_host = https://l.example\nlangfuse_public_key = pk-lf-1\n"
         "langfuse_secret_key = sk-lf-2\n",
         "https://l.example/api/public/otel/v1/traces",
         "Authorization: Basic cGstbGYtMTpzay1sZi0y\nx-langfuse-ingestion-version: 4\n"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        rig_configure(table[i].settings);
        make_spans(1);
        rig_flush();
        EXPECT(rig.n == 1);
        EXPECT_STR(rig.posts[0].url, table[i].url);
        EXPECT_STR(rig.posts[0].headers, table[i].headers);
        leave();
    }
}

/* ---- batches --------------------------------------------------------------------------------- */

TEST(a_full_batch_goes_at_once)
{
    double sent = rig_counted("sent");

    rig_configure(ON);
    make_spans(EXPORT_BATCH_SPANS - 1);
    rig_turn();
    EXPECT(rig.n == 0);
    make_spans(1);
    EXPECT(rig.n == 0); /* not from where a span ends */
    rig_turn();
    EXPECT(rig.n == 1);
    make_spans(EXPORT_BATCH_SPANS);
    rig_turn();
    EXPECT(rig.n == 1); /* one at a time */
    rig_answer(0, 202, 0);
    EXPECT(rig.n == 2 && rig_counted("sent") == sent + EXPORT_BATCH_SPANS);
    rig_answer(1, 200, 0);
    EXPECT(queue_first() == queue_next());
    leave();
}

TEST(an_old_batch_goes_as_it_is)
{
    rig_configure(ON);
    make_spans(3);
    wait_posts(1, 5000);
    EXPECT(rig.n == 1);
    rig_answer(0, 200, 0);
    leave();
}

TEST(large_spans_make_small_batches)
{
    static char large[SPAN_VALUE_MAX + 1];

    rig_configure(ON);
    memset(large, 'x', SPAN_VALUE_MAX);
    for (int i = 0; i < 100; i++) {
        struct span *s = span_begin(SPAN_CELL, NULL);

        span_text(s, KEY_INPUT, large);
        span_end(&s);
    }
    rig_flush();
    EXPECT(rig.n == 4);
    for (size_t i = 0; i < rig.n; i++)
        EXPECT(rig.posts[i].len < EXPORT_BATCH_SIZE + 64 * 1024);
    leave();
}

TEST(the_form_may_change)
{
    rig_configure(ON);
    make_spans(2);
    rig_configure(ON "otlp_protocol = json\n");
    make_spans(2);
    rig_flush();
    EXPECT(rig.n == 2);
    EXPECT_STR(rig.posts[0].type, "application/x-protobuf");
    EXPECT_STR(rig.posts[1].type, "application/json");
    EXPECT(strncmp(rig.posts[1].body, "{\"resourceSpans\":[", 18) == 0);
    leave();
}

/* ---- trouble --------------------------------------------------------------------------------- */

TEST(what_may_be_tried_again_is)
{
    static const int again[] = {-ECONNREFUSED, -ETIMEDOUT, -EPROTO, 429, 502, 503, 504};
    double sent = rig_counted("sent");

    for (size_t i = 0; i < ARRAY_SIZE(again); i++) {
        rig_configure(ON);
        make_spans(EXPORT_BATCH_SPANS);
        rig_turn();
        EXPECT(rig.n == 1);
        rig_answer(0, again[i], 0);
        EXPECT(rig.n == 1); /* after a pause, which new settings end */
        if (i > 0)
            rig_configure(ON);
        wait_posts(2, 5000);
        EXPECT(rig.n == 2 && rig.posts[0].len == rig.posts[1].len);
        rig_answer(1, 200, 0);
        leave();
    }
    EXPECT(rig_counted("sent") == sent + EXPORT_BATCH_SPANS * ARRAY_SIZE(again));
}

TEST(what_is_refused_is_given_up)
{
    static const int never[] = {400, 401, 404, 413, 500, 501, 301, 302};
    double refused = rig_counted("refused");

    for (size_t i = 0; i < ARRAY_SIZE(never); i++) {
        rig_configure(ON);
        make_spans(EXPORT_BATCH_SPANS);
        rig_turn();
        rig_answer(0, never[i], 0);
        EXPECT(queue_first() == queue_next());
        leave();
    }
    EXPECT(rig_counted("refused") == refused + EXPORT_BATCH_SPANS * ARRAY_SIZE(never));
}

TEST(retry_after_is_honoured)
{
    rig_configure(ON);
    make_spans(EXPORT_BATCH_SPANS);
    rig_turn();
    rig_answer(0, 503, 30000);
    wait_posts(2, 1500); /* without it, it would have been 0.75 s at the most */
    EXPECT(rig.n == 1);
    rig_configure(ON); /* new settings: no reason to wait any more */
    wait_posts(2, 1000);
    EXPECT(rig.n == 2);
    rig_answer(1, 200, 0);
    leave();
}

TEST(a_exporter_that_has_no_room)
{
    rig_configure(ON);
    rig.refuse = -EAGAIN;
    make_spans(EXPORT_BATCH_SPANS);
    rig_turn();
    EXPECT(rig.n == 0 && queue_next() - queue_first() == EXPORT_BATCH_SPANS);
    rig.refuse = 0;
    wait_posts(1, 5000);
    EXPECT(rig.n == 1);
    rig_answer(0, 200, 0);
    leave();
}

/* ---- bounds ---------------------------------------------------------------------------------- */

TEST(a_queue_that_is_full_drops_the_oldest)
{
    double dropped = rig_counted("dropped");

    rig_configure(ON);
    make_spans(TRACE_QUEUE_MAX + 1000);
    EXPECT(queue_next() - queue_first() == TRACE_QUEUE_MAX);
    EXPECT(rig_counted("dropped") == dropped + 1000);
    rig_turn();
    EXPECT(rig.n == 1);
    /* All that was there is gone while its first batch is under way; that one came through. */
    make_spans(TRACE_QUEUE_MAX + EXPORT_BATCH_SPANS);
    rig_answer(0, 200, 0);
    EXPECT(rig_counted("dropped") == dropped + 1000 + TRACE_QUEUE_MAX);
    EXPECT(rig.n == 2);
    /* The second did not, and is not there to be tried again. */
    make_spans(TRACE_QUEUE_MAX);
    rig_answer(1, -ETIMEDOUT, 0);
    EXPECT(rig_counted("dropped") == dropped + 1000 + 2 * TRACE_QUEUE_MAX);
    leave();
}

TEST(a_queue_is_bounded_in_bytes)
{
    static char large[SPAN_VALUE_MAX + 1];

    rig_configure(ON);
    memset(large, 'x', SPAN_VALUE_MAX);
    for (int i = 0; i < 2000; i++) {
        struct span *s = span_begin(SPAN_CELL, NULL);

        span_text(s, KEY_INPUT, large);
        span_text(s, KEY_OUTPUT, large);
        span_end(&s);
        EXPECT(queue_bytes_from(queue_first()) <= TRACE_QUEUE_SIZE);
    }
    EXPECT(queue_bytes_from(queue_first()) > TRACE_QUEUE_SIZE - 4 * SPAN_VALUE_MAX);
    leave();
}

TEST(one_target_does_not_hold_up_the_other)
{
    double sent = rig_counted("sent"), dropped = rig_counted("dropped");

    rig_configure(ON "langfuse_host = http://127.0.0.1:2\n");
    make_spans(EXPORT_BATCH_SPANS);
    rig_turn();
    EXPECT(rig.n == 2);
    /* The first never answers; the other takes all there is. */
    for (int i = 0; i < 30; i++) {
        rig_answer(rig.n - 1, 200, 0);
        make_spans(EXPORT_BATCH_SPANS);
        rig_turn();
    }
    rig_answer(rig.n - 1, 200, 0);
    EXPECT(rig_counted("sent") == sent + 31 * EXPORT_BATCH_SPANS);
    EXPECT(rig_counted("dropped") == dropped);
    EXPECT(queue_next() - queue_first() == TRACE_QUEUE_MAX);
    rig_answer(0, 200, 0);
    EXPECT(rig_counted("sent") == sent + 32 * EXPORT_BATCH_SPANS);
    EXPECT(rig_counted("dropped") == dropped + 30 * EXPORT_BATCH_SPANS - (double)TRACE_QUEUE_MAX);
    leave();
}

TEST(a_target_that_goes_away_meanwhile)
{
    rig_configure(ON);
    make_spans(EXPORT_BATCH_SPANS);
    rig_turn();
    rig_configure("");
    EXPECT(!trace_wanted() && queue_first() == queue_next());
    rig_answer(0, -EPIPE, 0);
    rig_configure(ON);
    make_spans(EXPORT_BATCH_SPANS);
    rig_turn();
    EXPECT(rig.n == 2);
    rig_configure("");
    rig_configure(ON);
    rig_answer(1, 200, 0);
    leave();
}

/* ---- a server that ends ---------------------------------------------------------------------- */

TEST(a_flush_with_nothing_to_send)
{
    rig_configure(ON);
    rig.flushed = false;
    trace_flush(rig_flushed, NULL);
    rig_turn();
    EXPECT(rig.flushed && rig.n == 0);
    leave();
}

TEST(a_flush_does_not_wait_for_who_is_down)
{
    double dropped = rig_counted("dropped");

    rig_configure(ON);
    make_spans(3);
    rig.flushed = false;
    trace_flush(rig_flushed, NULL);
    rig_turn();
    EXPECT(rig.n == 1 && !rig.flushed);
    rig_answer(0, -ECONNREFUSED, 0);
    EXPECT(rig.flushed && rig_counted("dropped") == dropped + 3);
    leave();
}

TEST(a_flush_is_over_after_a_second)
{
    rig_configure(ON);
    make_spans(3);
    rig.flushed = false;
    trace_flush(rig_flushed, NULL);
    for (int i = 0; i < 5000 && !rig.flushed; i++) {
        usleep(1000);
        rig_turn();
    }
    EXPECT(rig.flushed && rig.n == 1);
    rig_answer(0, 200, 0);
    leave();
}
