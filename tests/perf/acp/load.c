/* What a message costs on its way to an agent and back, and how many get through.
 *
 *   load trips ROUNDS SIZE @ PEER...      {"case":NAME,"us":T} for each round trip, in turns
 *   load rates COUNT @ PEER...            {"case":NAME,"way":"to"|"from"|"both","a_second":N}
 *
 * PEER: pipe NAME COMMAND ARG... @        or: ws NAME PORT KEY AGENT @ */
#include "load.h"

#include <signal.h>
#include <string.h>

#define PEERS_MAX 8
#define LINE      1000
#define ROUNDS    5

static struct peer peers[PEERS_MAX];
static size_t n_peers;

static void read_peers(char **argv)
{
    while (*argv) {
        char **end = argv;
        while (*end && strcmp(*end, "@") != 0)
            end++;
        if (!*end || end - argv < 3 || n_peers == PEERS_MAX) {
            fprintf(stderr, "acp load: what is '%s'?\n", *argv);
            exit(2);
        }
        *end = NULL;
        if (strcmp(*argv, "ws") == 0)
            peer_ws(&peers[n_peers++], argv[1], atoi(argv[2]), argv[3], argv[4]);
        else
            peer_pipe(&peers[n_peers++], argv[1], argv + 2);
        argv = end + 1;
    }
}

/* A message of that size, as JSON. */
static void fill(char *line, size_t len, const char *begin)
{
    memset(line, 'x', len);
    memcpy(line, begin, strlen(begin));
    memcpy(line + len - 2, "\"}", 2);
}

static uint64_t trip(struct peer *p, const char *line, size_t len)
{
    size_t got;
    uint64_t began = now_ns();

    peer_queue(p, line, len);
    const char *back = peer_wait(p, &got);
    uint64_t took = now_ns() - began;
    if (got != len || memcmp(back, line, len) != 0) {
        fprintf(stderr, "acp load: %s: another message came back\n", p->name);
        exit(1);
    }
    return took;
}

static void trips(unsigned rounds, size_t len)
{
    char *line = malloc(len);

    fill(line, len, "{\"text\":\"");
    for (size_t i = 0; i < n_peers; i++)
        for (unsigned warm = 0; warm < 200; warm++)
            trip(&peers[i], line, len);
    for (unsigned round = 0; round < rounds; round++)
        for (size_t i = 0; i < n_peers; i++) {
            struct peer *p = &peers[round % 2 ? n_peers - 1 - i : i];
            printf("{\"case\":\"%s\",\"us\":%.1f}\n", p->name, (double)trip(p, line, len) / 1000);
        }
    free(line);
}

static void tell(const struct peer *p, const char *way, unsigned count, uint64_t began)
{
    double seconds = (double)(now_ns() - began) / 1e9;

    printf("{\"case\":\"%s\",\"way\":\"%s\",\"a_second\":%.0f}\n", p->name, way, count / seconds);
}

static void to(struct peer *p, unsigned count)
{
    char line[LINE], expected[64];
    size_t got;
    uint64_t began = now_ns();

    fill(line, sizeof(line), "{\"method\":\"_sink\",\"text\":\"");
    for (unsigned i = 0; i < count; i++) {
        peer_queue(p, line, sizeof(line));
        while (p->queued - p->sent > 65536)
            peer_turn(p);
    }
    peer_queue(p, "{\"method\":\"_count\"}", strlen("{\"method\":\"_count\"}"));
    const char *answer = peer_wait(p, &got);
    snprintf(expected, sizeof(expected), "{\"count\":%u}", count);
    if (got != strlen(expected) || memcmp(answer, expected, got) != 0) {
        fprintf(stderr, "acp load: %s has counted %.*s\n", p->name, (int)got, answer);
        exit(1);
    }
    tell(p, "to", count, began);
}

static void from(struct peer *p, unsigned count)
{
    char ask[64];
    size_t got;
    uint64_t began = now_ns();

    peer_queue(p, ask,
               (size_t)snprintf(ask, sizeof(ask), "{\"method\":\"_source\",\"n\":%u}", count));
    for (unsigned i = 0; i < count; i++) {
        peer_wait(p, &got);
        if (got != LINE) {
            fprintf(stderr, "acp load: %s: %zu bytes\n", p->name, got);
            exit(1);
        }
    }
    tell(p, "from", count, began);
}

static void both(struct peer *p, unsigned count)
{
    char line[LINE];
    size_t got;
    unsigned sent = 0, back = 0;
    uint64_t began = now_ns();

    fill(line, sizeof(line), "{\"text\":\"");
    while (back < count) {
        for (; sent < count && p->queued - p->sent < 65536; sent++)
            peer_queue(p, line, sizeof(line));
        peer_turn(p);
        while (peer_next(p, &got))
            back++;
    }
    tell(p, "both", count, began);
}

int main(int argc, char **argv)
{
    bool is_trips = argc > 4 && strcmp(argv[1], "trips") == 0;

    signal(SIGPIPE, SIG_IGN);
    if (!is_trips && (argc < 4 || strcmp(argv[1], "rates") != 0))
        return 2;
    read_peers(argv + (is_trips ? 5 : 4));
    if (is_trips) {
        trips((unsigned)atoi(argv[2]), (size_t)atoi(argv[3]));
    } else {
        unsigned count = (unsigned)atoi(argv[2]);
        for (unsigned round = 0; round < ROUNDS; round++)
            for (size_t i = 0; i < n_peers; i++) {
                to(&peers[i], count);
                from(&peers[i], count);
                both(&peers[i], count);
            }
    }
    for (size_t i = 0; i < n_peers; i++)
        peer_end(&peers[i]);
    return 0;
}
