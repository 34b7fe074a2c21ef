/* Verbs that copy sandboxes and go back: what they ask a server for, and what they make of its
 * answers. */
#include "fake_api.h"

#include "cli/client/repl_trail.h"

TAP_MAIN

static const char two_forks[] =
    "[{\"sandbox\":{\"sandboxID\":\"i2\"},\"kernels\":["
    "{\"contextId\":\"k1\",\"language\":\"python\",\"state\":\"carried\","
    "\"dropped\":[{\"fd\":5,\"what\":\"socket\"},{\"fd\":7,\"what\":\"pipe\"}]},"
    "{\"contextId\":\"k2\",\"language\":\"javascript\",\"state\":\"fresh\",\"reason\":\"it has "
    "threads\"}]},"
    "{\"sandbox\":{\"sandboxID\":\"i3\"},\"kernels\":[]}]";
static const char in_the_way[] =
    "{\"code\":409,\"message\":\"Sandbox 'i1' cannot be copied now\",\"inTheWay\":["
    "{\"pid\":17,\"command\":\"python3 w.py\",\"what\":\"open for writing\",\"holds\":\"/home/user/"
    "x\",\"remedy\":\"close the file\"},"
    "{\"pid\":2,\"command\":\"a\\u001b[2J\",\"what\":\"a thread\",\"remedy\":\"join it\"},"
    "{\"pid\":3,\"command\":\"b\",\"what\":\"a thread\",\"remedy\":\"join it\"}]}";

static void expect_run(const struct fake_answer *answers, const struct client_verb *verb,
                       const char *line, int status, const char *out, const char *err,
                       const char *log)
{
    struct fake_api f = fake_open(answers);
    AUTO(free_p) char *got_out = NULL, *got_err = NULL;

    EXPECT(fake_run(verb, line, &got_out, &got_err) == status);
    EXPECT_STR(got_out, out);
    EXPECT_STR(got_err, err);
    if (log)
        EXPECT_STR(f.log, log);
    fake_close(&f);
}

/* ---- fork ------------------------------------------------------------------------------------ */

TEST(a_script_gets_ids)
{
    static const struct fake_answer answers[] = {{"POST /sandboxes/i1/fork", 201, two_forks}, {0}};

    expect_run(answers, &fork_verb, "i1", 0, "i2\ni3\n", "",
               "POST /sandboxes/i1/fork {\"timeout\":300}\n");
    expect_run(answers, &fork_verb, "i1 -n 2 --wait 2s --timeout 1m --inherit replay", 0,
               "i2\ni3\n", "",
               "POST /sandboxes/i1/fork {\"count\":2,\"timeout\":60,\"waitMs\":2000,\"inherit\":"
               "\"replay\"}\n");
}

TEST(who_asks_is_told_what_became_of_kernels)
{
    static const struct fake_answer answers[] = {{"POST /sandboxes/i1/fork", 201, two_forks}, {0}};

    expect_run(answers, &fork_verb, "-v i1", 0,
               "SANDBOX   CONTEXT   LANGUAGE     KERNEL    \n"
               "i2        k1        python       carried   without descriptor 5 (socket), 7 "
               "(pipe)\n"
               "i2        k2        javascript   fresh     it has threads\n"
               "i3        -         -            -         \n",
               "", NULL);
}

TEST(what_is_in_the_way_is_listed_with_what_helps)
{
    static const struct fake_answer answers[] = {{"POST /sandboxes/i1/fork", 409, in_the_way}, {0}};

    expect_run(answers, &fork_verb, "i1", 1, "",
               "sandglass: Sandbox 'i1' cannot be copied now\n"
               "PID   COMMAND        WHAT               HOLDS\n"
               " 17   python3 w.py   open for writing   /home/user/x\n"
               "  2   a?[2J          a thread           -\n"
               "  3   b              a thread           -\n"
               "What helps: close the file\n"
               "What helps: join it\n",
               NULL);
}

TEST(answers_that_are_not_what_they_should_be)
{
    static const struct fake_answer none[] = {{0}},
                                    text[] = {{"POST /sandboxes/i1/fork", 201, "{}"}, {0}},
                                    odd[] = {{"POST /sandboxes/i1/fork", 409,
                                              "{\"message\":\"no\",\"inTheWay\":7}"},
                                             {0}},
                                    part[] = {{"POST /sandboxes/i1/fork", 201,
                                               "[{\"sandbox\":{\"sandboxID\":\"i2\"}},{\"error\":{"
                                               "\"message\":\"no room\"}},7]"},
                                              {0}};

    expect_run(none, &fork_verb, "i1", 1, "", "sandglass: sandbox i1: not here\n", NULL);
    expect_run(text, &fork_verb, "i1", 1, "",
               "sandglass: sandbox i1: the server's answer is not a list\n", NULL);
    expect_run(odd, &fork_verb, "i1", 1, "", "sandglass: sandbox i1: no\n", NULL);
    expect_run(part, &fork_verb, "i1", 1, "i2\n",
               "sandglass: a copy was not made: no room\n"
               "sandglass: a copy was not made: the server gave no reason\n",
               NULL);
}

/* ---- ctx ------------------------------------------------------------------------------------- */

TEST(a_branch_with_variables)
{
    static const struct fake_answer answers[] = {
        {"POST /v1/contexts/branch", 201,
         "{\"context\":{\"id\":\"c2\",\"sandboxId\":\"i2\"},\"inherited\":\"state\",\"kernels\":[{"
         "\"contextId\":\"k1\",\"language\":\"python\",\"state\":\"carried\"}]}"},
        {0}};
    static const struct fake_answer refusing[] = {{"POST /v1/contexts/branch", 409, in_the_way},
                                                  {0}};

    expect_run(answers, &ctx_verb, "branch chat main alt --at m3 --wait 1s", 0,
               "alt: context c2, sandbox i2\n"
               "CONTEXT   LANGUAGE   KERNEL\n"
               "k1        python     carried\n",
               "",
               "POST /v1/contexts/branch {\"conversationId\":\"chat\",\"fromPathId\":\"main\","
               "\"toPathId\":\"alt\",\"inherit\":\"state\",\"atMessageId\":\"m3\",\"waitMs\":1000}"
               "\n");
    struct fake_api f = fake_open(refusing);
    AUTO(free_p) char *out = NULL, *err = NULL;
    EXPECT(fake_run(&ctx_verb, "branch chat main alt --state", &out, &err) == 1);
    EXPECT(strstr(err, "\nPID   COMMAND") && strstr(err, "\nWhat helps: join it\n"));
    fake_close(&f);
}

#define CHECKPOINTS                                                                 \
    "{\"code\":410,\"message\":\"gone\",\"checkpoints\":[{\"checkpointId\":\"p1\"," \
    "\"messageId\":\"m1\",\"memoryBytes\":2048,\"kernels\":true,\"current\":true}]}"

TEST(the_log_and_the_way_back)
{
    static const struct fake_answer answers[] = {
        {"GET /v1/contexts?limit=200&conversationId=chat&pathId=main", 200,
         "{\"contexts\":[{\"id\":\"c1\"}]}"},
        {"GET /v1/contexts/c1/checkpoints", 200, CHECKPOINTS},
        {"POST /v1/contexts/c1/rewind", 200,
         "{\"context\":{\"id\":\"c1\",\"pathId\":\"main\"},\"checkpoint\":{\"checkpointId\":"
         "\"p1\",\"messageId\":\"m1\"},\"kernels\":[]}"},
        {"POST /v1/contexts/c2/rewind", 410, CHECKPOINTS},
        {0}};
    static const char found[] = "GET /v1/contexts?limit=200&conversationId=chat&pathId=main \n";
    char log[256];

    expect_run(answers, &ctx_verb, "log chat main", 0,
               "    MESSAGE   CHECKPOINT   MADE   MEMORY   KERNELS\n"
               "*   m1        p1           -       2 KiB   yes\n",
               "", NULL);
    snprintf(log, sizeof(log), "%sPOST /v1/contexts/c1/rewind {\"messageId\":\"m1\"}\n", found);
    expect_run(answers, &ctx_verb, "rewind chat main m1", 0,
               "main: as it was before message m1 (checkpoint p1)\n", "", log);
    expect_run(answers, &ctx_verb, "rewind c1 --checkpoint p1", 0,
               "main: as it was before message m1 (checkpoint p1)\n", "",
               "POST /v1/contexts/c1/rewind {\"checkpointId\":\"p1\"}\n");
    expect_run(answers, &ctx_verb, "rewind c2 m0", 1, "",
               "sandglass: gone\n"
               "    MESSAGE   CHECKPOINT   MADE   MEMORY   KERNELS\n"
               "*   m1        p1           -       2 KiB   yes\n",
               NULL);
}

/* ---- the prompt ------------------------------------------------------------------------------ */

#define TAKEN(id, state)                                                                \
    "{\"checkpoint\":{\"checkpointId\":\"" id "\"},\"kernels\":[{\"contextId\":\"k1\"," \
    "\"state\":\"" state "\",\"reason\":\"because\"}]}"

/* A prompt's trail against such a server; `never` as in repl_trail_init. */
struct bed {
    struct fake_api fake;
    struct client client;
    struct repl_trail trail;
};

static void bed_open(struct bed *b, const struct fake_answer *answers, const char *never)
{
    struct sg_error e;

    *b = (struct bed){.fake = fake_open(answers)};
    fake_must(settings_load(&b->client.settings, NULL, NULL, &e) == 0, "settings");
    b->client.easy = curl_easy_init();
    repl_trail_init(&b->trail, &b->client, never);
}

static void bed_close(struct bed *b)
{
    repl_trail_done(&b->trail);
    curl_easy_cleanup(b->client.easy);
    settings_done(&b->client.settings);
    fake_close(&b->fake);
}

/* The cell after so many; returns why its kernel cannot be copied, or NULL. */
static char *add(struct bed *b, uint64_t count)
{
    struct repl_step step = {.n_contexts = 1, .counts = {count}, .line = xstrdup("x = 1")};
    int saved = dup(STDERR_FILENO), null = memfd_create("err", 0);
    char *fresh;

    dup2(null, STDERR_FILENO);
    repl_trail_add(&b->trail, "i1", "k1", &step, &fresh);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(null);
    return fresh;
}

static void expect_no_way(const struct bed *b, uint64_t n, const char *words)
{
    const struct repl_step *step;
    struct sg_error e = {0};

    EXPECT(repl_trail_find(&b->trail, n, &step, &e) < 0);
    if (!strstr(e.message, words))
        printf("# '%s' does not say '%s'\n", e.message, words);
    EXPECT(strstr(e.message, words) != NULL);
}

TEST(each_cell_has_a_checkpoint_and_back_finds_it)
{
    static const struct fake_answer answers[] = {
        {"POST /sandboxes/i1/checkpoints", 201, TAKEN("p1", "carried")},
        {"POST /sandboxes/i1/rewind", 200, TAKEN("p1", "carried")},
        {0}};
    const struct repl_step *step = NULL;
    json_t *kernels = NULL;
    struct sg_error e = {0};
    struct bed b;

    bed_open(&b, answers, NULL);
    expect_no_way(&b, 1, "no cell has run yet");
    EXPECT(add(&b, 6) == NULL && add(&b, 7) == NULL);
    EXPECT(repl_trail_find(&b.trail, 2, &step, &e) == 0 && step->counts[0] == 6);
    expect_no_way(&b, 3, "there are 2 cells to undo");
    EXPECT(repl_trail_rewind(&b.trail, "i1", step, &kernels, &e) == 0);
    EXPECT(json_array_size(kernels) == 1);
    EXPECT_STR(b.fake.log, "POST /sandboxes/i1/checkpoints {\"label\":\"cell 7\"}\n"
                           "POST /sandboxes/i1/checkpoints {\"label\":\"cell 8\"}\n"
                           "POST /sandboxes/i1/rewind {\"checkpointId\":\"p1\"}\n");
    repl_trail_cut(&b.trail, 2);
    expect_no_way(&b, 1, "no cell has run yet");
    for (uint64_t i = 0; i < 2 * REPL_STEPS_MAX; i++)
        add(&b, i);
    EXPECT(b.trail.n == REPL_STEPS_MAX);
    EXPECT(repl_trail_find(&b.trail, 1, &step, &e) == 0 &&
           step->counts[0] == 2 * REPL_STEPS_MAX - 1);
    json_decref(kernels);
    bed_close(&b);
}

TEST(what_is_in_the_way_is_in_the_way_of_one_cell)
{
    static const struct fake_answer answers[] = {
        {"POST /sandboxes/i1/checkpoints", 409, in_the_way}, {0}};
    struct bed b;

    bed_open(&b, answers, NULL);
    EXPECT(add(&b, 0) == NULL && b.trail.told && !b.trail.off);
    expect_no_way(
        &b, 1,
        "before cell 1: Sandbox 'i1' cannot be copied now (python3 w.py, pid 17: open for "
        "writing /home/user/x; close the file)");
    EXPECT(add(&b, 1) == NULL);
    EXPECT(strstr(b.fake.log, "cell 2") != NULL); /* it is tried again */
    bed_close(&b);
}

TEST(a_server_without_checkpoints_is_asked_once)
{
    static const struct fake_answer none[] = {{0}};
    struct bed b;

    bed_open(&b, none, NULL);
    EXPECT(add(&b, 0) == NULL && add(&b, 1) == NULL);
    EXPECT_STR(b.fake.log, "POST /sandboxes/i1/checkpoints {\"label\":\"cell 1\"}\n");
    expect_no_way(&b, 1, "before cell 2: the server takes no checkpoints");
    repl_trail_renew(&b.trail);
    EXPECT(b.trail.off == NULL && b.trail.n == 0);
    bed_close(&b);
    bed_open(&b, none, "it was not wanted");
    expect_no_way(&b, 1, "it was not wanted");
    EXPECT(add(&b, 0) == NULL);
    EXPECT_STR(b.fake.log, "");
    expect_no_way(&b, 1, "it was not wanted");
    bed_close(&b);
}

TEST(a_kernel_that_cannot_be_copied_leaves_no_checkpoint)
{
    static const struct fake_answer answers[] = {
        {"POST /sandboxes/i1/checkpoints", 201, TAKEN("p1", "fresh")},
        {"DELETE /sandboxes/i1/checkpoints/p1", 204, ""},
        {0}};
    struct bed b;

    bed_open(&b, answers, NULL);
    AUTO(free_p) char *fresh = add(&b, 0);
    EXPECT_STR(fresh ? fresh : "", "because");
    EXPECT(!b.trail.told);
    EXPECT(strstr(b.fake.log, "\nDELETE /sandboxes/i1/checkpoints/p1 \n") != NULL);
    expect_no_way(&b, 1, "before cell 1: because");
    bed_close(&b);
}
