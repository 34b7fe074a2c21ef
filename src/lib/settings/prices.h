/* What things cost: the setting `prices`.
 *
 *   cpu=0.05/h,memory=0.006/h,egress=0.09/G,execution=0.0001,sandbox=0,currency=USD
 *
 *   cpu        of one processor for a time: /s, /m, /h, /d
 *   memory     of one GiB for a time
 *   egress     of bytes that programs sent or got: /K, /M, /G, /T, powers of 1024
 *   execution  of a cell or a program, sandbox of one that is made: no unit
 *
 * In any order; what is not named costs nothing. Numbers are decimal, and so is the arithmetic:
 * amounts are whole numbers of 1/PRICE_ONE of the currency, each part rounded to the nearest, and a
 * sum is the sum of its parts. */
#pragma once

#include "lib/base/err.h"

#define PRICE_ONE      1000000000000u /* 1e12 */
#define PRICE_TEXT_MAX 48

enum price { PRICE_CPU, PRICE_MEMORY, PRICE_EGRESS, PRICE_EXECUTION, PRICE_SANDBOX, PRICE_MAX_ };
const char *price_name(enum price p); /* "cpu" */

struct prices {
    bool set;
    char currency[16];
    struct {
        uint64_t amount; /* for one of its unit */
        char unit;       /* h, G...; 0: a piece */
    } of[PRICE_MAX_];
};

/* "" is no prices at all. */
int prices_parse(const char *text, struct prices *ret, struct sg_error *e);

/* How much there was: microseconds, MiB times milliseconds, bytes, pieces. What is more than an
 * amount can say costs the most that it can. */
uint64_t price_cost(const struct prices *p, enum price which, uint64_t quantity);

/* "hour", "GiB hour", "GiB", "execution": what the price is for. */
void price_per(const struct prices *p, enum price which, char ret[PRICE_TEXT_MAX]);
uint64_t price_sum(uint64_t a, uint64_t b);
/* "0.0125": no more digits than it needs. */
void price_format(uint64_t amount, char ret[PRICE_TEXT_MAX]);
