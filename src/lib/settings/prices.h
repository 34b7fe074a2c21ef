/* Prices of what is used: the setting `prices`.
 *
 *   cpu=0.05/h,memory=0.006/h,egress=0.09/G,execution=0.0001,sandbox=0,currency=USD
 *
 *   cpu        of one processor for a time: /s, /m, /h, /d
 *   memory     of one GiB for a time
 *   egress     of bytes that programs sent or got: /K, /M, /G, /T, powers of 1024
 *   execution  of one cell or program that was run; no unit
 *   sandbox    of one sandbox that was made; no unit
 *
 * Entries may come in any order; a thing that has none costs nothing. The arithmetic is decimal:
 * amounts are whole numbers of 1/PRICE_ONE of the currency, each part is rounded to the nearest,
 * and a sum is the sum of its rounded parts. */
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
        uint64_t amount; /* price of one unit */
        char unit;       /* h, G...; 0: a piece */
    } of[PRICE_MAX_];
};

/* "" is no prices at all. */
int prices_parse(const char *text, struct prices *ret, struct sg_error *e);

/* The price of a quantity: microseconds, MiB times milliseconds, bytes, or pieces. A price that is
 * too large for an amount becomes the largest amount. */
uint64_t price_cost(const struct prices *p, enum price which, uint64_t quantity);

/* "hour", "GiB hour", "GiB", "execution": what the price is for. */
void price_per(const struct prices *p, enum price which, char ret[PRICE_TEXT_MAX]);
uint64_t price_sum(uint64_t a, uint64_t b);
/* Writes an amount as "0.0125", with no more digits than it needs. */
void price_format(uint64_t amount, char ret[PRICE_TEXT_MAX]);
