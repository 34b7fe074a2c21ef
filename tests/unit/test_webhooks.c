#include "tap.h"

#include <openssl/hmac.h>
#include <openssl/sha.h>

#include "lib/base/clock.h"
#include "front/core/events.h"
#include "front/core/webhooks.h"
#include "front/store/db.h"
#include "front/store/events.h"
#include "store_place.h"
#include "lib/text/base64.h"
#include "front/telemetry/exporter.h"

#define ACME   "aaaaaaaaaaaaaaaaaaaa"
#define SECRET "shh"

/* ---- an exporter that does what the test says ------------------------------------------------ */

static struct sent {
    uint64_t event;
    char url[64], kind[32], signature[160], body[1024], hook[UUID_LEN + 1], delivery[UUID_LEN + 1];
    bool judged;
    void (*done)(void *arg, int status, uint64_t retry_after_ms);
    void *arg;
} sent[64];
static size_t n_sent, n_answered; /* of those in `sent`, which begins anew when it is full */
static uint64_t first_event, last_event;
static int refuse; /* what exporter_post says */
static int (*answers)(const struct sent *s);

int exporter_post(struct exporter *h, const struct exporter_post *post)
{
    (void)h;
    if (n_sent == ARRAY_SIZE(sent) && n_answered == n_sent)
        n_sent = n_answered = 0;
    if (refuse || n_sent == ARRAY_SIZE(sent))
        return refuse ? refuse : -EAGAIN;
    struct sent *s = &sent[n_sent];
    *s = (struct sent){.done = post->done, .arg = post->arg};
    snprintf(s->url, sizeof(s->url), "%s", post->url);
    snprintf(s->body, sizeof(s->body), "%.*s", (int)post->len, (const char *)post->body);
    for (const struct exporter_header *x = post->headers; x->name; x++) {
        const char *value = hidden_reveal(x->value);

        if (strcmp(x->name, "Sandglass-Event") == 0)
            snprintf(s->kind, sizeof(s->kind), "%s", value);
        else if (strcmp(x->name, "Sandglass-Delivery") == 0)
            s->event = strtoull(value, NULL, 10);
        else if (strcmp(x->name, "Sandglass-Signature") == 0)
            snprintf(s->signature, sizeof(s->signature), "%s", value);
        else if (strcmp(x->name, "e2b-webhook-id") == 0)
            snprintf(s->hook, sizeof(s->hook), "%s", value);
        else if (strcmp(x->name, "e2b-delivery-id") == 0)
            snprintf(s->delivery, sizeof(s->delivery), "%s", value);
        else if (strcmp(x->name, "e2b-signature") == 0)
            snprintf(s->signature, sizeof(s->signature), "%s", value);
    }
    s->judged = post->judged;
    EXPECT_STR(post->content_type, "application/json");
    n_sent++;
    if (!first_event)
        first_event = s->event;
    last_event = s->event;
    return 0;
}

/* ---- a server -------------------------------------------------------------------------------- */

static struct front here;
static struct place place;
static uv_timer_t alive; /* a loop without anything to wait for does not turn */

static void ignore(uv_timer_t *timer)
{
    (void)timer;
}

static void begin(void)
{
    struct sg_error e = {0};

    here.store = open_ok(&place);
    EXPECT(events_start(&here, &e) == 0);
    webhooks_start(&here, (struct exporter *)&here);
}

static void set(enum setting k, const char *value)
{
    EXPECT(settings_set(&here.settings, k, "test", value, NULL) == 0);
}

static void set_up(void)
{
    webhook_second_ms = 20;
    place = place_make();
    if (!here.loop) {
        here.loop = uv_default_loop();
        uv_timer_init(here.loop, &alive);
        uv_timer_start(&alive, ignore, 3600000, 3600000);
    }
    settings_init(&here.settings);
    set(SETTING_webhook_url, "http://127.0.0.1:1/hook");
    set(SETTING_webhook_secret, SECRET);
    n_sent = n_answered = 0;
    first_event = last_event = 0;
    refuse = 0;
    answers = NULL;
    begin();
}

static void answer_one(int status)
{
    struct sent *s = &sent[n_answered++];

    s->done(s->arg, status, 0);
}

static void turn(void)
{
    for (int i = 0; i < 3; i++) {
        usleep(1000);
        uv_run(here.loop, UV_RUN_NOWAIT);
        while (answers && n_answered < n_sent)
            answer_one(answers(&sent[n_answered]));
    }
}

static void turn_until(size_t n)
{
    uint64_t end = clock_ns() + 20000000000ull;

    while (n_sent < n && clock_ns() < end)
        turn();
    EXPECT(n_sent >= n);
}

/* What was done is written down. */
static void settle(void)
{
    uint64_t end = clock_ns() + 120000000ull;

    while (clock_ns() < end)
        turn();
}

static void tear_down(void)
{
    while (n_answered < n_sent)
        answer_one(200);
    set(SETTING_webhook_url, "");
    webhooks_configure(&here);
    settle();
    events_flush(&here);
    store_close(here.store);
    place_remove(&place);
}

static uint64_t emit(enum event_kind kind)
{
    event_emit(&here, kind, &(struct event_about){.tenant = ACME, .sandbox_id = "s"});
    return events_last(&here);
}

static int yes(const struct sent *s)
{
    (void)s;
    return 204;
}

static int no(const struct sent *s)
{
    (void)s;
    return -ECONNREFUSED;
}

/* ---------------------------------------------------------------------------------------------- */

static void check_signature(const struct sent *s)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    char text[1024], hex[65] = "";
    unsigned len = 0;
    long long t = strtoll(s->signature + 2, NULL, 10);
    int n = snprintf(text, sizeof(text), "%lld.%s", t, s->body);

    EXPECT(strncmp(s->signature, "t=", 2) == 0);
    EXPECT(t > clock_wall_ms() / 1000 - 60 && t <= clock_wall_ms() / 1000);
    HMAC(EVP_sha256(), SECRET, (int)strlen(SECRET), (const unsigned char *)text, (size_t)n, mac,
         &len);
    for (unsigned i = 0; i < len; i++)
        snprintf(hex + 2 * i, 3, "%02x", mac[i]);
    const char *v1 = strstr(s->signature, ",v1=");
    EXPECT(v1 && strcmp(v1 + 4, hex) == 0);
}

TEST(an_event_is_posted_and_signed)
{
    set_up();
    uint64_t id = emit(HAPPENED_SANDBOX_CREATED);
    EXPECT(n_sent == 0); /* not in the middle of what it is about */
    turn_until(1);
    EXPECT(sent[0].event == id);
    EXPECT_STR(sent[0].kind, "sandbox.created");
    EXPECT_STR(sent[0].url, "http://127.0.0.1:1/hook");
    EXPECT(strstr(sent[0].body, "\"type\":\"sandbox.created\"") && sent[0].body[0] == '{');
    check_signature(&sent[0]);
    tear_down();
}

TEST(they_come_in_order_one_after_the_other)
{
    set_up();
    for (int i = 0; i < 5; i++)
        emit(HAPPENED_SANDBOX_CREATED);
    turn_until(1);
    turn();
    EXPECT(n_sent == 1);
    answer_one(200);
    turn_until(2);
    answers = yes;
    turn_until(5);
    for (size_t i = 0; i < 5; i++)
        EXPECT(sent[i].event == i + 1);
    tear_down();
}

TEST(if_many_wait_four_are_on_their_way)
{
    set_up();
    for (int i = 0; i < 40; i++)
        emit(HAPPENED_SANDBOX_CREATED);
    turn_until(4);
    turn();
    EXPECT(n_sent == 4);
    answers = yes;
    turn_until(40);
    tear_down();
}

TEST(only_what_is_wanted_is_posted)
{
    set_up();
    set(SETTING_webhook_events, "context.*,sandbox.ended");
    webhooks_configure(&here);
    answers = yes;
    emit(HAPPENED_SANDBOX_CREATED);
    emit(HAPPENED_CONTEXT_CREATED);
    emit(HAPPENED_SANDBOX_PAUSED);
    emit(HAPPENED_SANDBOX_ENDED);
    turn_until(2);
    turn();
    EXPECT(n_sent == 2 && sent[0].event == 2 && sent[1].event == 4);
    tear_down();
}

static int fails_twice(const struct sent *s)
{
    static unsigned n;

    return s->event == 1 && n++ < 2 ? 500 : 200;
}

TEST(one_that_fails_shortly_keeps_its_place)
{
    set_up();
    answers = fails_twice;
    emit(HAPPENED_SANDBOX_CREATED);
    emit(HAPPENED_SANDBOX_ENDED);
    turn_until(4);
    EXPECT(sent[0].event == 1 && sent[1].event == 1 && sent[2].event == 1 && sent[3].event == 2);
    check_signature(&sent[2]);
    tear_down();
}

static int first_fails(const struct sent *s)
{
    return s->event == 1 ? 503 : 200;
}

TEST(one_that_fails_for_long_does_not_hold_up_the_others)
{
    bool passed = false;
    unsigned tries = 0;
    set_up();

    answers = first_fails;
    emit(HAPPENED_SANDBOX_CREATED);
    emit(HAPPENED_SANDBOX_ENDED);
    turn_until(6);
    for (size_t i = 0; i < n_sent; i++) {
        passed |= sent[i].event == 2;
        tries += sent[i].event == 1;
    }
    EXPECT(passed && tries >= 4);
    tear_down();
}

TEST(in_the_end_it_is_given_up)
{
    set_up();
    webhook_second_ms = 1; /* 1, 2, ... 256, 300 ms */
    answers = no;
    emit(HAPPENED_SANDBOX_CREATED);
    turn_until(WEBHOOK_TRIES);
    answers = yes;
    emit(HAPPENED_SANDBOX_ENDED);
    turn_until(WEBHOOK_TRIES + 1);
    for (size_t i = 0; i < WEBHOOK_TRIES; i++)
        EXPECT(sent[i].event == 1);
    EXPECT(sent[WEBHOOK_TRIES].event == 2);
    tear_down();
}

static int gone(const struct sent *s)
{
    return s->event == 1 ? 410 : s->event == 2 ? 404 : s->event == 3 ? 429 : 200;
}

TEST(a_clear_no_is_final)
{
    set_up();
    answers = gone;
    emit(HAPPENED_SANDBOX_CREATED);
    emit(HAPPENED_SANDBOX_CREATED);
    emit(HAPPENED_SANDBOX_CREATED);
    turn_until(4);
    EXPECT(sent[0].event == 1 && sent[1].event == 2 && sent[2].event == 3 && sent[3].event == 3);
    tear_down();
}

TEST(a_restart_goes_on_where_it_was)
{
    set_up();
    for (int i = 0; i < 4; i++)
        emit(HAPPENED_SANDBOX_CREATED);
    turn_until(1);
    answer_one(200);
    turn_until(2);
    answer_one(500); /* 2 is open */
    webhooks_flush();
    size_t before = n_sent;
    /* What is on its way when a front ends is not answered any more. */
    events_flush(&here);
    store_close(here.store);
    set(SETTING_webhook_url, "http://127.0.0.1:1/other");
    n_answered = before;
    answers = yes;
    begin();
    turn_until(before + 2);
    settle();
    bool seen[5] = {false};
    for (size_t i = 1; i < n_sent; i++)
        seen[sent[i].event] = true;
    EXPECT(!seen[1] && seen[2] && seen[3] && seen[4]);
    tear_down();
}

TEST(the_first_time_begins_with_what_is_new)
{
    set_up();
    set(SETTING_webhook_url, "");
    webhooks_configure(&here);
    emit(HAPPENED_SANDBOX_CREATED);
    settle();
    EXPECT(n_sent == 0);
    set(SETTING_webhook_url, "https://example.com/x");
    webhooks_configure(&here);
    emit(HAPPENED_SANDBOX_ENDED);
    turn_until(1);
    EXPECT(n_sent == 1 && sent[0].event == 2);
    EXPECT_STR(sent[0].url, "https://example.com/x");
    tear_down();
}

TEST(a_exporter_that_has_enough_to_do_is_request_log_again)
{
    set_up();
    refuse = -EAGAIN;
    emit(HAPPENED_SANDBOX_CREATED);
    settle();
    refuse = 0;
    turn_until(1);
    refuse = -EINVAL; /* that cannot be sent at all */
    emit(HAPPENED_SANDBOX_CREATED);
    answer_one(200);
    settle();
    refuse = 0;
    emit(HAPPENED_SANDBOX_CREATED);
    turn_until(2);
    EXPECT(sent[0].event == 1 && sent[1].event == 3);
    tear_down();
}

TEST(without_a_secret_there_is_no_signature)
{
    set_up();
    set(SETTING_webhook_secret, "");
    webhooks_configure(&here);
    emit(HAPPENED_SANDBOX_CREATED);
    turn_until(1);
    EXPECT_STR(sent[0].signature, "");
    tear_down();
}

TEST(a_list_that_is_wrong_posts_nothing)
{
    set_up();
    set(SETTING_webhook_events, "sandbox.exploded");
    webhooks_configure(&here);
    emit(HAPPENED_SANDBOX_CREATED);
    settle();
    EXPECT(n_sent == 0);
    tear_down();
}

TEST(what_is_not_kept_any_more_is_given_up)
{
    set_up();
    here.settings.event_keep = 100;
    /* Beyond those in memory, only these are. */
    for (int i = 0; i < EVENTS_KEPT + 500; i++) {
        emit(HAPPENED_SANDBOX_CREATED);
        if (i % 50 == 49)
            events_flush(&here);
    }
    answers = yes;
    for (uint64_t end = clock_ns() + 10000000000ull;
         last_event < EVENTS_KEPT + 500 && clock_ns() < end;)
        turn();
    EXPECT(first_event >= 401 && first_event <= 501 && last_event == EVENTS_KEPT + 500);
    tear_down();
}

/* ---- tenants' own ---------------------------------------------------------------------------- */

static struct store_tenant acme;

static void hook_add(char last, const char *url)
{
    struct store_hook h = {.name = "mine",
                           .url = url,
                           .events = "sandbox.lifecycle.created,sandbox.lifecycle.killed",
                           .secret = SECRET,
                           .enabled = true};
    struct sg_error e;

    snprintf(h.id, sizeof(h.id), "00000000-0000-4000-8000-00000000000%c", last);
    EXPECT(store_tenant_ensure(here.store, "acme", &acme, &e) == 0);
    memcpy(h.tenant, acme.id, sizeof(h.tenant));
    EXPECT(store_hook_add(here.store, &h, &e) == 0);
    webhooks_changed(&here, h.tenant, h.id);
}

static void emit_of(const char *tenant, enum event_kind kind)
{
    event_emit(&here, kind,
               &(struct event_about){.tenant = tenant, .sandbox_id = ACME, .reason = "killed"});
}

static void without_own(void)
{
    set_up();
    set(SETTING_webhook_url, "");
    webhooks_configure(&here);
}

static void check_e2b_signature(const struct sent *s)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    AUTO(strbuf_done) struct strbuf want = strbuf_upto(64);
    char text[2048];
    int n = snprintf(text, sizeof(text), SECRET "%s", s->body);

    SHA256((const unsigned char *)text, (size_t)n, hash);
    base64_encode(&want, hash, sizeof(hash));
    EXPECT(want.len == 44 && strlen(s->signature) == 43);
    EXPECT(strncmp(s->signature, want.buf, 43) == 0);
}

TEST(a_tenants_gets_its_events_in_e2bs_form)
{
    without_own();
    hook_add('1', "https://a.test/x");
    emit_of(acme.id, HAPPENED_SANDBOX_CREATED);
    emit_of(ACME, HAPPENED_SANDBOX_CREATED); /* another's */
    emit_of(acme.id, HAPPENED_SANDBOX_PAUSED);
    emit_of(acme.id, HAPPENED_SANDBOX_CHECKPOINT);
    emit_of(acme.id, HAPPENED_SANDBOX_ENDED);
    turn_until(1);
    EXPECT_STR(sent[0].url, "https://a.test/x");
    EXPECT_STR(sent[0].hook, "00000000-0000-4000-8000-000000000001");
    EXPECT(uuid_valid(sent[0].delivery) && sent[0].judged);
    check_e2b_signature(&sent[0]);
    EXPECT(strstr(sent[0].body, "\"type\":\"sandbox.lifecycle.created\""));
    answer_one(500);
    turn_until(2);
    EXPECT(strcmp(sent[0].delivery, sent[1].delivery) != 0);
    EXPECT_STR(sent[0].body, sent[1].body);
    answer_one(200);
    turn_until(3);
    EXPECT(strstr(sent[2].body, "\"type\":\"sandbox.lifecycle.killed\""));
    EXPECT(strstr(sent[2].body, "\"kill_reason\":\"request\""));
    settle();
    EXPECT(n_sent == 3);
    tear_down();
}

TEST(a_target_that_is_not_allowed_any_more_gets_nothing)
{
    without_own();
    set(SETTING_webhook_targets, "*, http://localhost:1");
    hook_add('1', "http://localhost:1/x");
    emit_of(acme.id, HAPPENED_SANDBOX_CREATED);
    turn_until(1);
    EXPECT(!sent[0].judged); /* the operator vouches for it */
    answer_one(200);
    set(SETTING_webhook_targets, "*");
    emit_of(acme.id, HAPPENED_SANDBOX_CREATED);
    settle();
    EXPECT(n_sent == 1);
    tear_down();
}

TEST(one_that_does_not_answer_delays_no_other)
{
    without_own();
    for (char c = 'a'; c < 'a' + STORE_WEBHOOKS_MAX; c++)
        hook_add(c, c == 'a' ? "https://a.test/" : "https://dead.test/");
    emit_of(acme.id, HAPPENED_SANDBOX_CREATED);
    turn_until(POSTS_OF_A_TENANT);
    turn();
    EXPECT(n_sent == POSTS_OF_A_TENANT); /* a tenant has no more places */
    answers = no;
    turn_until(STORE_WEBHOOKS_MAX);
    tear_down();
}

static int only_good(const struct sent *s)
{
    return strcmp(s->url, "https://a.test/") == 0 ? 200 : -ETIMEDOUT;
}

TEST(it_goes_on_after_a_restart_and_ends_when_it_is_removed)
{
    struct sg_error e;

    without_own();
    hook_add('1', "https://dead.test/");
    emit_of(acme.id, HAPPENED_SANDBOX_CREATED);
    turn_until(1);
    answer_one(500);
    webhooks_flush();
    events_flush(&here);
    store_close(here.store);
    begin();
    turn_until(2);
    EXPECT_STR(sent[0].body, sent[1].body);
    EXPECT(store_hook_remove(here.store, acme.id, sent[0].hook, &e) == 0);
    webhooks_changed(&here, acme.id, sent[0].hook);
    answer_one(500);
    emit_of(acme.id, HAPPENED_SANDBOX_CREATED);
    hook_add('2', "https://a.test/");
    answers = only_good;
    emit_of(acme.id, HAPPENED_SANDBOX_ENDED);
    turn_until(3);
    settle();
    EXPECT(n_sent == 3 && strstr(sent[2].body, "killed")); /* what was before it is not for it */
    tear_down();
}

TEST(delays_grow_and_differ)
{
    webhook_second_ms = 1000;
    EXPECT(webhook_delay_ms(1, 0, 0) == 750 && webhook_delay_ms(1, 500, 0) == 1250);
    EXPECT(webhook_delay_ms(3, 0, 0) == 3000);
    EXPECT(webhook_delay_ms(9, 0, 0) == 192000);
    EXPECT(webhook_delay_ms(11, 0, 0) == 225000 && webhook_delay_ms(11, 150000, 0) == 375000);
    EXPECT(webhook_delay_ms(1, 0, 60000) == 60000);
    EXPECT(webhook_delay_ms(1, 0, 86400000) == 300000);
}

TAP_MAIN
