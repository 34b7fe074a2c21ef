/* How long the guard thinks: decisions by a policy with many names, and reading such a policy.
 *
 *   decide NAMES COUNT    a line for each sort of connection, with the nanoseconds of a decision */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/text/strbuf.h"
#include "guard/policy.h"

#define DOCUMENT_MAX (16u * 1024 * 1024)
#define ASKED        1024 /* different names */
#define ROUNDS       5    /* the middle one counts */

/* Of this process, which only computes: others on the machine do not count. */
static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double middle(double *values)
{
    qsort(values, ROUNDS, sizeof(*values), by_value);
    return values[ROUNDS / 2];
}

/* Each third one is a wildcard, and each tenth entry is followed by a network. */
static void write_document(long names, struct strbuf *out)
{
    strbuf_addstr(
        out, "{\"tenant\":\"t\",\"sandbox\":\"s\",\"default\":\"deny\",\"deny\":[],\"allow\":[");
    for (long i = 0; i < names; i++) {
        strbuf_addf(out, "%s\"%sservice-%ld.zone-%ld.example\"", i ? "," : "",
                    i % 3 == 0 ? "*." : "", i, i % 97);
        if (i % 10 == 0)
            strbuf_addf(out, ",\"93.%ld.%ld.0/24\"", i / 256 % 256, i % 256);
    }
    strbuf_addstr(out,
                  "],\"rules\":[],\"fakeIp\":false,\"sanitise\":\"off\",\"flows\":0,\"flowRate\":0,"
                  "\"bytes\":0}");
}

static struct policy *read_policy(long names)
{
    AUTO(strbuf_done) struct strbuf text = {0};
    double times[ROUNDS];
    struct policy *p = NULL;
    struct sg_error e = {0};

    strbuf_init(&text, DOCUMENT_MAX);
    write_document(names, &text);
    for (int i = 0; i < ROUNDS; i++) {
        policy_unref(p);
        double t = now_ns();
        if (policy_parse(text.buf, text.len, NULL, &p, &e) < 0) {
            fprintf(stderr, "decide: %s\n", e.message);
            exit(1);
        }
        times[i] = now_ns() - t;
    }
    printf("{\"case\":\"parse\",\"us\":%.1f,\"bytes\":%zu}\n", middle(times) / 1000, text.len);
    return p;
}

/* Sorts of names: what is asked, and what must come out. */
static const struct sort {
    const char *name, *pattern;
    long first; /* of the entries that are asked for: every third */
    enum verdict verdict;
} sorts[] = {
    {"a name that is allowed", "service-%ld.zone-%ld.example", 1, VERDICT_ALLOW},
    {"a name below a wildcard", "a.b.service-%ld.zone-%ld.example", 0, VERDICT_ALLOW},
    {"a name that is not", "service-%ld.zone-%ld.elsewhere", 0, VERDICT_DENY},
    {"a long name that is not",
     "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z.service-%ld.zone-%ld.example.net", 0,
     VERDICT_DENY},
};

/* As for a connection: by address, which says that the name decides, and by name. */
static double decide(const struct policy *p, const char (*names)[POLICY_NAME_MAX + 1], long count,
                     const struct sort *sort)
{
    struct net_addr a;
    struct judgement j, fallback;

    if (net_addr_parse("198.41.0.4", &a) < 0)
        exit(1);
    double t = now_ns();
    for (long i = 0; i < count; i++) {
        policy_judge_address(p, &a, &j, &fallback);
        if (j.verdict == VERDICT_NAME)
            policy_judge_name(p, names[i % ASKED], &a, &j);
        if (j.verdict != sort->verdict) {
            fprintf(stderr, "decide: %s: '%s'\n", names[i % ASKED], j.rule);
            exit(1);
        }
    }
    return (now_ns() - t) / (double)count;
}

int main(int argc, char **argv)
{
    static char names[ASKED][POLICY_NAME_MAX + 1];
    double times[ROUNDS];

    if (argc != 3)
        return 2;
    long n = strtol(argv[1], NULL, 10), count = strtol(argv[2], NULL, 10);
    struct policy *p = read_policy(n);
    for (size_t k = 0; k < sizeof(sorts) / sizeof(sorts[0]); k++) {
        /* Far from each other, so that they are not all in the processor's cache. */
        for (long i = 0; i < ASKED; i++) {
            long at = (i * 7919 % (n / 3 - 1)) * 3 + sorts[k].first;
            snprintf(names[i], sizeof(names[i]), sorts[k].pattern, at, at % 97);
        }
        for (int i = 0; i < ROUNDS; i++)
            times[i] = decide(p, names, count, &sorts[k]);
        printf("{\"case\":\"%s\",\"us\":%.4f}\n", sorts[k].name, middle(times) / 1000);
    }
    policy_unref(p);
    return 0;
}
