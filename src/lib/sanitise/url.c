/* Finds URLs with credentials. The URL of a database is replaced as a whole, with its host and
 * name; of any other URL only the password is. */

#include "lib/sanitise/impl.h"

#define SCHEME_MAX 32
#define CC_SCHEME  (CC_ALNUM | CC_DOT)

static const char *const databases[] = {
    "postgres",   "postgresql", "pgsql",      "mysql",     "mariadb",     "mongodb",
    "redis",      "rediss",     "valkey",     "amqp",      "amqps",       "mssql",
    "sqlserver",  "oracle",     "clickhouse", "cassandra", "couchbase",   "couchbases",
    "couchdb",    "neo4j",      "neo4js",     "bolt",      "cockroachdb", "cockroach",
    "snowflake",  "redshift",   "db2",        "influxdb",  "memcached",   "elasticsearch",
    "opensearch", "rabbitmq",   "kafka",      "nats",      "timescaledb", "libsql",
    "surrealdb",  "arangodb",   "firebird",   "vertica",   "trino",       "presto",
    "hive",       "ldap",       "ldaps",      "smtp",      "smtps",
};

/* Whether the scheme before `colon` is a database's: mysql+pymysql and jdbc:mysql count as
 * mysql. */
static bool is_database(const struct view *v, size_t start, size_t colon)
{
    size_t len = 0;

    while (start + len < colon && v->p[start + len] != '+')
        len++;
    for (size_t i = 0; i < ARRAY_SIZE(databases); i++) {
        if (strlen(databases[i]) == len && view_has(v, start, databases[i]))
            return true;
    }
    return false;
}

/* Whether the password is only a placeholder: ${PASS}, <password>, ****, %s. */
static bool is_placeholder(const struct view *v, size_t from, size_t to)
{
    int c = view_at(v, from);
    size_t stars = 0;

    while (from + stars < to && (v->p[from + stars] == '*' || v->p[from + stars] == '.' ||
                                 v->p[from + stars] == 'x' || v->p[from + stars] == 'X'))
        stars++;
    if (stars == to - from)
        return true;
    if (c == '$' || c == '{' || c == '<' || c == '[' || c == '(')
        return true;
    return c == '%' && (view_at(v, from + 1) == 's' || view_at(v, from + 1) == '(');
}

static bool ends_authority(int c, bool database)
{
    if (c <= ' ' || strchr("/\"'`<>|\\", c))
        return true;
    return !database && strchr("?#,;()", c);
}

struct credentials {
    size_t colon, at; /* 0: none */
};

/* Finds user:password@ from `from` on. Passwords with an @ in them occur. */
static struct credentials credentials_in(const struct view *v, size_t from, bool database)
{
    struct credentials c = {0};

    for (size_t i = from; i < from + AHEAD - SCHEME_MAX - 8; i++) {
        int ch = view_at(v, i);
        if (ends_authority(ch, database))
            break;
        if (ch == ':' && !c.colon)
            c.colon = i;
        else if (ch == '@')
            c.at = i;
    }
    if (c.at <= c.colon)
        c.colon = 0;
    return c;
}

/* Whether a driver's parameters hold a password: ?user=a&password=b, ;password=b */
static bool has_password_parameter(const struct view *v, size_t from)
{
    for (size_t i = from; i < from + AHEAD - SCHEME_MAX - 16; i++) {
        int c = view_at(v, i);
        if (!cc_is(c, CC_ADDR | CC_COMMA) && c != ';')
            return false;
        if ((c == '?' || c == '&' || c == ';') &&
            (view_has(v, i + 1, "password=") || view_has(v, i + 1, "pwd=")))
            return !is_placeholder(v, i + (view_has(v, i + 1, "pwd=") ? 5 : 10), i + 12);
    }
    return false;
}

static void database_url(const struct view *v, size_t start, size_t to, struct finds *out)
{
    struct credentials c = credentials_in(v, to, true);
    bool jdbc = start >= 5 && view_has(v, start - 5, "jdbc:");
    bool several = view_has(v, start, "mongodb") || view_has(v, start, "kafka") || jdbc;

    bool given = c.colon && c.at > c.colon + 1 && !is_placeholder(v, c.colon + 1, c.at);
    if (!given && !has_password_parameter(v, to))
        return;
    find_add(out, jdbc ? start - 5 : start, given ? c.at + 1 : to, KIND_DATABASE_URL,
             several ? TAIL_URLS : TAIL_URL);
}

void spot_url(const struct view *v, size_t to, struct finds *out)
{
    size_t colon = to - 3, start = colon;

    while (colon - start < SCHEME_MAX &&
           (cc_is(view_at(v, start - 1), CC_SCHEME) || view_at(v, start - 1) == '+'))
        start--;
    if (start == colon)
        return;
    if (is_database(v, start, colon)) {
        database_url(v, start, to, out);
        return;
    }
    struct credentials c = credentials_in(v, to, false);
    if (!c.colon || c.at <= c.colon + 1 || is_placeholder(v, c.colon + 1, c.at))
        return;
    find_add(out, c.colon + 1, c.at, KIND_API_KEY, TAIL_NONE);
}
