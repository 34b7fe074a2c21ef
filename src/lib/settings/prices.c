#include "lib/settings/prices.h"

#define DECIMALS     12
#define PRICE_MOST   1000000u /* highest price of one unit, in the currency */
#define US_PER_S     1000000u
#define MIB_MS_PER_S (1024u * 1000)

struct unit {
    char letter;
    uint64_t size;
    const char *name;
};

#define UNITS 4
static const struct unit times[UNITS] = {
    {'s', 1, "second"}, {'m', 60, "minute"}, {'h', 3600, "hour"}, {'d', 86400, "day"}};
static const struct unit sizes[UNITS] = {{'K', 1ull << 10, "KiB"},
                                         {'M', 1ull << 20, "MiB"},
                                         {'G', 1ull << 30, "GiB"},
                                         {'T', 1ull << 40, "TiB"}};

static const struct what {
    const char *name, *example, *more;
    const char *of;           /* before the unit's name */
    const struct unit *units; /* NULL: counted in pieces */
    uint64_t steps;           /* steps in a unit of size 1: quantities are counted in steps */
} whats[] = {
    [PRICE_CPU] = {"cpu", "cpu=0.05/h", " (or /s, /m, /d)", "", times, US_PER_S},
    [PRICE_MEMORY] = {"memory", "memory=0.006/h", " (or /s, /m, /d)", "GiB ", times, MIB_MS_PER_S},
    [PRICE_EGRESS] = {"egress", "egress=0.09/G", " (or /K, /M, /T)", "", sizes, 1},
    [PRICE_EXECUTION] = {"execution", "execution=0.0001", "", "", NULL, 1},
    [PRICE_SANDBOX] = {"sandbox", "sandbox=0.01", "", "", NULL, 1},
};
_Static_assert(ARRAY_SIZE(whats) == PRICE_MAX_, "a row for each price");

const char *price_name(enum price p)
{
    return whats[p].name;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Reads a decimal number at *cursor, and moves the cursor behind it. */
static bool read_amount(const char **cursor, uint64_t *ret)
{
    const char *p = *cursor;
    size_t whole = strspn(p, "0123456789"), decimals = 0;
    uint64_t n = 0, fraction = 0;

    if (whole == 0 || whole > 9)
        return false;
    for (size_t i = 0; i < whole; i++)
        n = 10 * n + (uint64_t)(*p++ - '0');
    if (*p == '.') {
        decimals = strspn(++p, "0123456789");
        if (decimals == 0 || decimals > DECIMALS)
            return false;
        for (size_t i = 0; i < DECIMALS; i++)
            fraction = 10 * fraction + (uint64_t)(i < decimals ? *p++ - '0' : 0);
    }
    if (n > PRICE_MOST || (n == PRICE_MOST && fraction > 0))
        return false;
    *cursor = p;
    *ret = n * PRICE_ONE + fraction;
    return true;
}

static const struct unit *unit_of(enum price which, char letter)
{
    const struct unit *units = whats[which].units;

    for (size_t i = 0; units && i < UNITS; i++)
        if (units[i].letter == letter)
            return &units[i];
    return NULL;
}

/* How many steps a unit has; 0: no unit has that letter. */
static uint64_t steps_of(enum price which, char letter)
{
    const struct unit *unit = unit_of(which, letter);

    if (!whats[which].units)
        return letter == '\0' ? whats[which].steps : 0;
    return unit ? unit->size * whats[which].steps : 0;
}

static int parse_price(const char *entry, enum price which, const char *value, struct prices *ret,
                       struct sg_error *e)
{
    const char *p = value;
    uint64_t amount = 0;
    char unit = '\0';
    bool good = read_amount(&p, &amount);

    if (good && *p == '/') {
        unit = p[1];
        p += unit ? 2 : 1;
        good = unit != '\0';
    }
    if (!good || *p || steps_of(which, unit) == 0)
        return err_invalid(
            e,
            "prices: '%.64s' is not a price: write it like %s%s, up to %u and with at most "
            "%d decimals",
            entry, whats[which].example, whats[which].more, PRICE_MOST, DECIMALS);
    ret->of[which].amount = amount;
    ret->of[which].unit = unit;
    return 0;
}

static int parse_currency(const char *entry, const char *value, struct prices *ret,
                          struct sg_error *e)
{
    size_t len = strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");

    if (len == 0 || value[len] || len >= sizeof(ret->currency))
        return err_invalid(e,
                           "prices: '%.64s' is not a currency: write up to %zu letters, like "
                           "currency=USD",
                           entry, sizeof(ret->currency) - 1);
    memcpy(ret->currency, value, len + 1);
    return 0;
}

#define CURRENCY PRICE_MAX_ /* the bit of "currency" in `seen` */

static int parse_entry(char *entry, struct prices *ret, unsigned *seen, struct sg_error *e)
{
    char copy[80];
    unsigned which = 0;

    snprintf(copy, sizeof(copy), "%s", entry);
    char *value = strchr(entry, '=');
    if (value)
        *value++ = '\0';
    while (which < PRICE_MAX_ && strcmp(whats[which].name, entry) != 0)
        which++;
    if (!value || (which == CURRENCY && strcmp(entry, "currency") != 0))
        return err_invalid(
            e,
            "prices: '%.64s' is not understood: name cpu, memory, egress, execution, "
            "sandbox or currency, like cpu=0.05/h",
            copy);
    if (*seen & (1u << which))
        return err_invalid(e, "prices: %s is given twice", entry);
    *seen |= 1u << which;
    return which == CURRENCY ? parse_currency(copy, value, ret, e)
                             : parse_price(copy, (enum price)which, value, ret, e);
}

static char *without_blanks(char *s)
{
    size_t len;

    s += strspn(s, " \t");
    for (len = strlen(s); len > 0 && (s[len - 1] == ' ' || s[len - 1] == '\t'); len--)
        s[len - 1] = '\0';
    return s;
}

int prices_parse(const char *text, struct prices *ret, struct sg_error *e)
{
    struct prices p = {.currency = "USD"};
    char copy[512], *rest = copy, *entry;
    unsigned seen = 0;

    if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy))
        return err_set(e, SG_ERR_INVALID, -E2BIG, "prices: the list is longer than %zu characters",
                       sizeof(copy) - 1);
    if (*without_blanks(copy) == '\0') {
        *ret = (struct prices){0};
        return 0;
    }
    while ((entry = strsep(&rest, ","))) {
        int r = parse_entry(without_blanks(entry), &p, &seen, e);
        if (r < 0)
            return r;
    }
    p.set = true;
    *ret = p;
    return 0;
}

/* ---- reckoning ------------------------------------------------------------------------------- */

uint64_t price_cost(const struct prices *p, enum price which, uint64_t quantity)
{
    uint64_t steps = steps_of(which, p->of[which].unit);

    if (p->of[which].amount == 0 || steps == 0)
        return 0;
    /* Both factors are below 2^64, so the product fits. */
    unsigned __int128 n = (unsigned __int128)p->of[which].amount * quantity;
    n = n / steps + (n % steps >= steps - steps / 2);
    return n < UINT64_MAX ? (uint64_t)n : UINT64_MAX;
}

void price_per(const struct prices *p, enum price which, char ret[PRICE_TEXT_MAX])
{
    const struct unit *unit = unit_of(which, p->of[which].unit);

    snprintf(ret, PRICE_TEXT_MAX, "%s%s", whats[which].of, unit ? unit->name : whats[which].name);
}

uint64_t price_sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void price_format(uint64_t amount, char ret[PRICE_TEXT_MAX])
{
    int n = snprintf(ret, PRICE_TEXT_MAX, "%llu.%012llu", (unsigned long long)(amount / PRICE_ONE),
                     (unsigned long long)(amount % PRICE_ONE));

    while (n > 0 && ret[n - 1] == '0')
        ret[--n] = '\0';
    if (n > 0 && ret[n - 1] == '.')
        ret[n - 1] = '\0';
}
