/* Contexts: sandboxes of paths of conversations, made and found again, by one caller or by many. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "load.h"

#define CALLERS_MAX 256

static int put(int fd, const struct server *s, const char *conversation, long ttl_s,
               struct answer *ret)
{
    char headers[256], body[512];
    int len = snprintf(body, sizeof(body),
                       "{\"conversationId\":\"%s\",\"pathId\":\"main\",\"ttlSeconds\":%ld}",
                       conversation, ttl_s);

    snprintf(headers, sizeof(headers), "X-API-Key: %s\r\nContent-Type: application/json\r\n",
             s->key);
    request(fd, "PUT", "/v1/contexts", headers, body, (size_t)len);
    read_answer(fd, ret);
    if (ret->status != 200 && ret->status != 201)
        fail("PUT /v1/contexts", ret->body);
    return ret->status;
}

static void end(int fd, const struct server *s, const char *id)
{
    static _Thread_local struct answer a;
    char path[128];

    snprintf(path, sizeof(path), "/v1/contexts/%s", id);
    call(fd, s, "DELETE", path, "", 200, &a);
}

static void name_of(char ret[64], const char *prefix, long i)
{
    snprintf(ret, 64, "%s-%ld", prefix, i);
}

/* paths-new PREFIX N TTL REST_US keep|end */
int verb_paths_new(const struct server *s, int argc, char **argv)
{
    static struct answer a;
    char conversation[64], id[64];

    if (argc != 5)
        fail("paths-new", "PREFIX N TTL REST_US keep|end");
    long n = count_of(argv[1]), ttl = count_of(argv[2]), rest = count_of(argv[3]);
    int fd = dial(s);
    for (long i = 0; i < n; i++) {
        name_of(conversation, argv[0], i);
        double t = now_us();
        if (put(fd, s, conversation, ttl, &a) != 201)
            fail("paths-new", "it was there already");
        print_us("new", now_us() - t);
        json_field(a.body, "id", id, sizeof(id));
        if (strcmp(argv[4], "end") == 0)
            end(fd, s, id);
        usleep((useconds_t)rest);
    }
    return 0;
}

/* paths-found PREFIX N ROUNDS: in turn, each of those that paths-new has made. */
int verb_paths_found(const struct server *s, int argc, char **argv)
{
    static struct answer a;
    char conversation[64];

    if (argc != 3)
        fail("paths-found", "PREFIX N ROUNDS");
    long n = count_of(argv[1]), rounds = count_of(argv[2]);
    int fd = dial(s);
    for (long i = 0; i < rounds; i++) {
        name_of(conversation, argv[0], i % n);
        double t = now_us();
        if (put(fd, s, conversation, 3600, &a) != 200)
            fail("paths-found", "it was not there");
        print_us("found", now_us() - t);
    }
    return 0;
}

static void run_code(int fd, const struct server *s, const char *conversation,
                     const struct cell *cell)
{
    static _Thread_local struct answer a;
    char body[1024];

    snprintf(body, sizeof(body), "{\"conversationId\":\"%s\",\"pathId\":\"main\",\"code\":\"%s\"}",
             conversation, cell->code);
    call(fd, s, "POST", "/v1/tools/run_code", body, 200, &a);
    if (a.len < cell->least || !strstr(a.body, cell->says) || !strstr(a.body, "\"success\":true"))
        fail("run_code", a.body);
}

/* paths-run CONVERSATION ROUNDS [CELL] */
int verb_paths_run(const struct server *s, int argc, char **argv)
{
    if (argc < 2)
        fail("paths-run", "CONVERSATION ROUNDS [CELL]");
    const struct cell *cell = cell_named(argc > 2 ? argv[2] : "1+1");
    long rounds = count_of(argv[1]);
    int fd = dial(s);
    run_code(fd, s, argv[0], cell);
    for (long i = 0; i < rounds; i++) {
        double t = now_us();
        run_code(fd, s, argv[0], cell);
        print_us("run_code", now_us() - t);
    }
    return 0;
}

/* ---- many callers, one path ------------------------------------------------------------------ */

struct race {
    const struct server *server;
    pthread_barrier_t round;
    long rounds, callers;
    char conversation[64];
    char sandboxes[CALLERS_MAX][64];
    int statuses[CALLERS_MAX];
    char context[64];
};

struct racer {
    struct race *race;
    long number;
};

static void *racer_main(void *arg)
{
    struct racer *r = arg;
    struct race *race = r->race;
    struct answer *a = malloc(sizeof(*a));
    int fd = dial(race->server);

    for (long i = 0; i < race->rounds; i++) {
        pthread_barrier_wait(&race->round);
        race->statuses[r->number] = put(fd, race->server, race->conversation, 600, a);
        json_field(a->body, "sandboxID", race->sandboxes[r->number], sizeof(race->sandboxes[0]));
        if (r->number == 0)
            json_field(a->body, "id", race->context, sizeof(race->context));
        pthread_barrier_wait(&race->round);
    }
    close(fd);
    free(a);
    return NULL;
}

static bool one_sandbox(const struct race *race)
{
    long created = 0, same = 0;

    for (long i = 0; i < race->callers; i++) {
        created += race->statuses[i] == 201;
        same += strcmp(race->sandboxes[i], race->sandboxes[0]) == 0;
    }
    return created == 1 && same == race->callers;
}

/* paths-race CALLERS ROUNDS */
int verb_paths_race(const struct server *s, int argc, char **argv)
{
    static struct race race;
    static struct racer racers[CALLERS_MAX];
    static pthread_t threads[CALLERS_MAX];
    long wrong = 0;

    if (argc != 2)
        fail("paths-race", "CALLERS ROUNDS");
    race.server = s;
    race.callers = count_of(argv[0]);
    race.rounds = count_of(argv[1]);
    if (race.callers > CALLERS_MAX)
        fail("paths-race", "too many callers");
    pthread_barrier_init(&race.round, NULL, (unsigned)race.callers + 1);
    for (long i = 0; i < race.callers; i++) {
        racers[i] = (struct racer){&race, i};
        if (pthread_create(&threads[i], NULL, racer_main, &racers[i]) != 0)
            fail("paths-race", "cannot start a thread");
    }
    int fd = dial(s);
    for (long i = 0; i < race.rounds; i++) {
        name_of(race.conversation, "race", i);
        pthread_barrier_wait(&race.round);
        double t = now_us();
        pthread_barrier_wait(&race.round);
        print_us("race", now_us() - t);
        wrong += !one_sandbox(&race);
        end(fd, s, race.context);
    }
    for (long i = 0; i < race.callers; i++)
        pthread_join(threads[i], NULL);
    printf("{\"case\":\"race\",\"wrong\":%ld}\n", wrong);
    return 0;
}

/* ---- reaping while serving ------------------------------------------------------------------- */

struct service {
    const struct server *server;
    volatile bool over;
};

static void *serve_on(void *arg)
{
    struct service *v = arg;
    int fd = dial(v->server);

    while (!v->over) {
        double t = now_us();
        run_code(fd, v->server, "served", cell_named("1+1"));
        print_us("served", now_us() - t);
        usleep(1000);
    }
    close(fd);
    return NULL;
}

/* paths-reap: ends what has expired, and runs cells of another path meanwhile. */
int verb_paths_reap(const struct server *s, int argc, char **argv)
{
    struct service v = {.server = s};
    static struct answer a;
    pthread_t thread;
    int fd = dial(s);

    (void)argc, (void)argv;
    run_code(fd, s, "served", cell_named("1+1"));
    if (pthread_create(&thread, NULL, serve_on, &v) != 0)
        fail("paths-reap", "cannot start a thread");
    double t = now_us();
    call(fd, s, "POST", "/v1/contexts/cleanup", "{}", 200, &a);
    double us = now_us() - t;
    v.over = true;
    pthread_join(thread, NULL);
    const char *n = strstr(a.body, "\"terminated\":");
    printf("{\"case\":\"reap\",\"us\":%.0f,\"ended\":%ld}\n", us,
           n ? strtol(n + strlen("\"terminated\":"), NULL, 10) : 0L);
    return 0;
}
