#include "lib/settings/settings.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/text/parse.h"
#include "lib/settings/address.h"
#include "lib/settings/prices.h"

#define ENGINE_MAX      16384u
#define CHECKPOINTS_MAX 1024u /* of a sandbox */

enum kind { TEXT, PATH, SECRET, URL, LISTEN, MODULES, YES_NO, SIZE, MILLI, COUNT, TIME, CHOICE };

struct row {
    struct setting_info info;
    enum kind kind;
    size_t offset, size;
    uint64_t min, max;          /* SIZE, MILLI, COUNT, TIME */
    const char *const *choices; /* CHOICE; NULL-terminated */
};

static const char *const fork_choices[] = {"auto", "plain", NULL};
static const char *const egress_choices[] = {"open", "block", NULL};
static const char *const path_choices[] = {"auto", "sk_lookup", "tproxy", "redirect", NULL};
static const char *const fake_choices[] = {"auto", "yes", "no", NULL};
static const char *const sanitise_choices[] = {"enforce", "report-only", "off", NULL};
static const char *const log_choices[] = {"auto", "text", "json", NULL};
static const char *const otlp_choices[] = {"protobuf", "json", NULL};
static const char *const level_choices[] = {"debug", "info", "warn", "error", NULL};

#define AT(field) \
    .offset = offsetof(struct settings, field), .size = sizeof(((struct settings *)0)->field)
#define MIB    (1024ull * 1024)
#define TIB    (1024ull * 1024 * MIB)
#define DAY_MS 86400000ull

static const struct row rows[SETTING_MAX_] = {
    [SETTING_listen] = {{"listen", "ADDR[,ADDR...]", SETTINGS_LISTEN, "addresses to serve on",
                         true},
                        LISTEN,
                        AT(listen)},
    [SETTING_state] = {{"state", "DIR", SETTINGS_STATE_DIR, "where keys and snapshots are kept",
                        true},
                       PATH,
                       AT(state)},
    [SETTING_tls_cert] = {{"tls_cert", "FILE", "", "certificate chain (PEM): serve HTTPS", false},
                          PATH,
                          AT(tls_cert)},
    [SETTING_tls_key] = {{"tls_key", "FILE", "", "its private key (PEM)", false},
                         PATH,
                         AT(tls_key)},
    [SETTING_domain] = {{"domain", "NAME[:PORT]", "", "ports of sandboxes are PORT-ID.NAME", false},
                        TEXT,
                        AT(domain)},
    [SETTING_insecure] = {{"insecure", NULL, "no", "allow other machines in without TLS", true},
                          YES_NO,
                          AT(insecure)},
    [SETTING_front_user] =
        {{"front_user", "USER", "",
          "user of the process that speaks HTTP (default: sandglass if it exists)", true},
         TEXT,
         AT(front_user)},
    [SETTING_front_program] = {{"front_program", "FILE", "",
                                "that process's program, for tests and packagers", true},
                               PATH,
                               AT(front_program)},
    [SETTING_sandbox_memory] = {{"sandbox_memory", "SIZE", "2G", "memory of a sandbox", false},
                                SIZE,
                                AT(sandbox_memory),
                                16 * MIB,
                                8 * TIB},
    [SETTING_sandbox_disk] = {{"sandbox_disk", "SIZE", "1G",
                               "disk of a sandbox, kept in memory too", false},
                              SIZE,
                              AT(sandbox_disk),
                              MIB,
                              8 * TIB},
    [SETTING_sandbox_cpus] = {{"sandbox_cpus", "NUMBER", "2", "processors of a sandbox", false},
                              MILLI,
                              AT(sandbox_cpus_milli),
                              10,
                              1024000},
    [SETTING_sandbox_pids] = {{"sandbox_pids", "NUMBER", "512",
                               "processes and threads of a sandbox", false},
                              COUNT,
                              AT(sandbox_pids),
                              1,
                              32768},
    [SETTING_machine_memory] = {{"machine_memory", "SIZE", "0",
                                 "memory of all sandboxes; 0: most of the machine's", false},
                                SIZE,
                                AT(machine_memory),
                                0,
                                64 * TIB},
    [SETTING_pool_min] = {{"pool_min", "NUMBER", "2", "sandboxes that wait ready, at least", false},
                          COUNT,
                          AT(pool_min),
                          0,
                          1024},
    [SETTING_pool_max] =
        {{"pool_max", "NUMBER", "32", "and at most", false}, COUNT, AT(pool_max), 0, 1024},
    [SETTING_warm_kernels] = {{"warm_kernels", "SET", "auto",
                               "what waiting kernels have loaded, or none", false},
                              MODULES,
                              AT(warm_kernels)},
    [SETTING_kernel_fork] = {{"kernel_fork", "auto|plain", "auto",
                              "how they are copied: as twins if possible", false},
                             CHOICE,
                             AT(kernel_fork),
                             .choices = fork_choices},
    [SETTING_tenant_sandboxes] = {{"tenant_sandboxes", "NUMBER", "100",
                                   "sandboxes of one tenant at a time", false},
                                  COUNT,
                                  AT(tenant_sandboxes),
                                  1,
                                  ENGINE_MAX / 2},
    [SETTING_tenant_paused] = {{"tenant_paused", "NUMBER", "1000", "paused sandboxes of one tenant",
                                false},
                               COUNT,
                               AT(tenant_paused),
                               1,
                               1000000},
    [SETTING_tenant_paused_memory] = {{"tenant_paused_memory", "SIZE", "4G",
                                       "memory that its paused sandboxes may hold", false},
                                      SIZE,
                                      AT(tenant_paused_memory),
                                      PAUSED_LEAST,
                                      TIB},
    [SETTING_tenant_memory] = {{"tenant_memory", "SIZE", "0",
                                "memory of all sandboxes of one tenant; 0: no limit", false},
                               SIZE,
                               AT(tenant_memory),
                               0,
                               64 * TIB},
    [SETTING_tenant_snapshots] = {{"tenant_snapshots", "NUMBER", "100",
                                   "snapshots that a tenant may keep", false},
                                  COUNT,
                                  AT(tenant_snapshots),
                                  0,
                                  1000000},
    [SETTING_tenant_rate] = {{"tenant_rate", "NUMBER", "2000",
                              "control requests a second of a tenant; 0: no limit", false},
                             COUNT,
                             AT(tenant_rate),
                             0,
                             1000000},
    [SETTING_tenant_idle] = {{"tenant_idle", "TIME", "10m",
                              "how long a tenant without sandboxes keeps a pool", false},
                             TIME,
                             AT(tenant_idle_ms),
                             1000,
                             DAY_MS},
    [SETTING_drain_timeout] = {{"drain_timeout", "TIME", "30s",
                                "how long a server that ends waits for what is under way", false},
                               TIME,
                               AT(drain_timeout_ms),
                               0,
                               DAY_MS},
    [SETTING_max_timeout] = {{"max_timeout", "TIME", "24h", "longest life that can be asked for",
                              false},
                             TIME,
                             AT(max_timeout_ms),
                             1000,
                             3650 * DAY_MS},
    [SETTING_default_template] = {{"default_template", "NAME", "base",
                                   "template of a sandbox that names none", false},
                                  TEXT,
                                  AT(default_template)},
    [SETTING_store] = {{"store", "WHERE", "sqlite",
                        "contexts: sqlite, memory or postgresql://USER@HOST/DB", true},
                       SECRET,
                       AT(store)},
    [SETTING_public_url] = {{"public_url", "URL", "",
                             "this server, for clients of others on the same database", false},
                            TEXT,
                            AT(public_url)},
    [SETTING_context_template] = {{"context_template", "NAME", "code-interpreter-v1",
                                   "template of a context that names none", false},
                                  TEXT,
                                  AT(context_template)},
    [SETTING_context_ttl] = {{"context_ttl", "TIME", "30m", "how long an unused context lives",
                              false},
                             TIME,
                             AT(context_ttl_ms),
                             1000,
                             365 * DAY_MS},
    [SETTING_context_keep] = {{"context_keep", "TIME", "30d",
                               "how long contexts that have ended are listed; 0: for ever", false},
                              TIME,
                              AT(context_keep_ms),
                              0,
                              36500 * DAY_MS},
    [SETTING_usage_keep] = {{"usage_keep", "TIME", "400d",
                             "how long usage is kept, by the day; 0: for ever", false},
                            TIME,
                            AT(usage_keep_ms),
                            0,
                            36500 * DAY_MS},
    [SETTING_tenant_contexts] = {{"tenant_contexts", "NUMBER", "10",
                                  "sandboxes of a tenant's contexts at a time", false},
                                 COUNT,
                                 AT(tenant_contexts),
                                 1,
                                 ENGINE_MAX},
    [SETTING_conversation_contexts] = {{"conversation_contexts", "NUMBER", "5",
                                        "and of one conversation's", false},
                                       COUNT,
                                       AT(conversation_contexts),
                                       1,
                                       ENGINE_MAX},
    [SETTING_execution_timeout] = {{"execution_timeout", "TIME", "1m",
                                    "time of a tool's code that names none", false},
                                   TIME,
                                   AT(execution_timeout_ms),
                                   1000,
                                   DAY_MS},
    [SETTING_execution_timeout_max] = {{"execution_timeout_max", "TIME", "10m",
                                        "and the longest that it can name", false},
                                       TIME,
                                       AT(execution_timeout_max_ms),
                                       1000,
                                       DAY_MS},
    [SETTING_code_max] = {{"code_max", "SIZE", "100K", "code that a tool takes", false},
                          SIZE,
                          AT(code_max),
                          1024,
                          16 * MIB},
    [SETTING_reap_every] = {{"reap_every", "TIME", "1m", "how often expired contexts are ended",
                             false},
                            TIME,
                            AT(reap_every_ms),
                            100,
                            DAY_MS},
    [SETTING_reap_batch] = {{"reap_batch", "NUMBER", "50", "and how many in one go", false},
                            COUNT,
                            AT(reap_batch),
                            1,
                            200},
    [SETTING_checkpoints] = {{"checkpoints", "yes|no", "yes",
                              "leave checkpoints before messages, to go back to", false},
                             YES_NO,
                             AT(checkpoints)},
    [SETTING_checkpoint_keep] = {{"checkpoint_keep", "NUMBER", "20",
                                  "the last of a sandbox that all stay", false},
                                 COUNT,
                                 AT(checkpoint_keep),
                                 1,
                                 CHECKPOINTS_MAX},
    [SETTING_checkpoint_max] = {{"checkpoint_max", "NUMBER", "32",
                                 "and with older ones, of which few stay", false},
                                COUNT,
                                AT(checkpoint_max),
                                1,
                                CHECKPOINTS_MAX},
    [SETTING_checkpoint_age] = {{"checkpoint_age", "TIME", "24h", "how long one is kept", false},
                                TIME,
                                AT(checkpoint_age_ms),
                                1000,
                                365 * DAY_MS},
    [SETTING_checkpoint_memory] = {{"checkpoint_memory", "SIZE", "16G",
                                    "kernels of a tenant's checkpoints, in memory", false},
                                   SIZE,
                                   AT(checkpoint_memory),
                                   0,
                                   8 * TIB},
    [SETTING_analysis] = {{"analysis", "DIR", "", "programs of run_analysis, if not our own",
                           false},
                          PATH,
                          AT(analysis)},
    [SETTING_guard_user] = {{"guard_user", "USER", "",
                             "user of the guard, through which traffic goes out (sandglass-guard)",
                             true},
                            TEXT,
                            AT(guard_user)},
    [SETTING_guard_program] = {{"guard_program", "FILE", "",
                                "that process's program, for tests and packagers", true},
                               PATH,
                               AT(guard_program)},
    [SETTING_egress_e2b_default] = {{"egress_e2b_default", "open|block", "open",
                                     "network of a create that says nothing about it", false},
                                    CHOICE,
                                    AT(egress_e2b_default),
                                    .choices = egress_choices},
    [SETTING_egress_path] = {{"egress_path", "HOW", "auto",
                              "how traffic comes to the guard: sk_lookup, tproxy, redirect", true},
                             CHOICE,
                             AT(egress_path),
                             .choices = path_choices},
    [SETTING_egress_dns] = {{"egress_dns", "ADDR[,ADDR...]", "auto",
                             "name servers of the guard; auto: those of this machine", false},
                            TEXT,
                            AT(egress_dns)},
    [SETTING_egress_internal] = {{"egress_internal", "LIST", "",
                                  "internal addresses and networks that may be dialled", false},
                                 TEXT,
                                 AT(egress_internal)},
    [SETTING_egress_deny] = {{"egress_deny", "LIST", "",
                              "names, addresses and networks that no sandbox may reach", false},
                             TEXT,
                             AT(egress_deny)},
    [SETTING_egress_roots] = {{"egress_roots", "FILE", "",
                               "more certificates (PEM) to trust where traffic is inspected",
                               false},
                              PATH,
                              AT(egress_roots)},
    [SETTING_egress_fake_ip] = {{"egress_fake_ip", "auto|yes|no", "auto",
                                 "answer names with addresses that stand for them", false},
                                CHOICE,
                                AT(egress_fake_ip),
                                .choices = fake_choices},
    [SETTING_egress_quic] = {{"egress_quic", NULL, "no", "let QUIC (UDP port 443) out", false},
                             YES_NO,
                             AT(egress_quic)},
    [SETTING_egress_dot] = {{"egress_dot", NULL, "no", "let DNS over TLS (port 853) out", false},
                            YES_NO,
                            AT(egress_dot)},
    [SETTING_egress_ech] = {{"egress_ech", NULL, "no",
                             "believe the outer name of an encrypted ClientHello", false},
                            YES_NO,
                            AT(egress_ech)},
    [SETTING_egress_flows] = {{"egress_flows", "NUMBER", "128",
                               "connections of a sandbox at a time", false},
                              COUNT,
                              AT(egress_flows),
                              1,
                              8192},
    [SETTING_egress_flow_rate] = {{"egress_flow_rate", "NUMBER", "200",
                                   "new connections of a sandbox in a second; 0: no limit", false},
                                  COUNT,
                                  AT(egress_flow_rate),
                                  0,
                                  1000000},
    [SETTING_egress_bytes] = {{"egress_bytes", "SIZE", "0",
                               "bytes that a sandbox may send and receive; 0: no limit", false},
                              SIZE,
                              AT(egress_bytes),
                              0,
                              1024 * TIB},
    [SETTING_sanitise] = {{"sanitise", "MODE", "enforce",
                           "contexts and tools: enforce, report-only or off", false},
                          CHOICE,
                          AT(sanitise),
                          .choices = sanitise_choices},
    [SETTING_sanitise_streams] = {{"sanitise_streams", "MODE", "off",
                                   "output of sandboxes made through E2B's API: the same", false},
                                  CHOICE,
                                  AT(sanitise_streams),
                                  .choices = sanitise_choices},
    [SETTING_sanitise_always] = {{"sanitise_always", NULL, "no",
                                  "no tenant, key or call may say off", false},
                                 YES_NO,
                                 AT(sanitise_always)},
    [SETTING_sanitise_patterns] = {{"sanitise_patterns", "FILE", "",
                                    "more patterns: lines name = expression", false},
                                   PATH,
                                   AT(sanitise_patterns)},
    [SETTING_audit_size] = {{"audit_size", "SIZE", "16M", "size of one file of the record", false},
                            SIZE,
                            AT(audit_size),
                            64 * 1024,
                            TIB},
    [SETTING_audit_files] = {{"audit_files", "NUMBER", "16",
                              "files of the record that are kept for each tenant", false},
                             COUNT,
                             AT(audit_files),
                             2,
                             100000},
    [SETTING_agent_timeout] = {{"agent_timeout", "TIME", "1h",
                                "life of a hosted agent that names none", false},
                               TIME,
                               AT(agent_timeout_ms),
                               1000,
                               365 * DAY_MS},
    [SETTING_agent_replay] = {{"agent_replay", "SIZE", "16M",
                               "messages of an agent that are kept for who comes back", false},
                              SIZE,
                              AT(agent_replay),
                              64 * 1024,
                              1024 * MIB},
    [SETTING_tenant_agents] = {{"tenant_agents", "NUMBER", "32", "hosted agents of a tenant",
                                false},
                               COUNT,
                               AT(tenant_agents),
                               1,
                               ENGINE_MAX},
    [SETTING_otlp_endpoint] = {{"otlp_endpoint", "URL", "",
                                "collector of traces (OTLP over HTTP): http://HOST:4318", false},
                               URL,
                               AT(otlp_endpoint)},
    [SETTING_otlp_protocol] = {{"otlp_protocol", "protobuf|json", "protobuf", "how they are sent",
                                false},
                               CHOICE,
                               AT(otlp_protocol),
                               .choices = otlp_choices},
    [SETTING_otlp_headers] = {{"otlp_headers", "LIST", "", "headers for it: name=value,...", false},
                              SECRET,
                              AT(otlp_headers)},
    [SETTING_trace_sample] = {{"trace_sample", "PERCENT", "100",
                               "how many of the traces that begin here are kept", false},
                              COUNT,
                              AT(trace_sample),
                              0,
                              100},
    [SETTING_trace_content] = {{"trace_content", NULL, "no", "code and output in traces, sanitised",
                                false},
                               YES_NO,
                               AT(trace_content)},
    [SETTING_langfuse_host] = {{"langfuse_host", "URL", "", "Langfuse, for the same traces", false},
                               URL,
                               AT(langfuse_host)},
    [SETTING_langfuse_public_key] = {{"langfuse_public_key", "KEY", "", "its public key", false},
                                     TEXT,
                                     AT(langfuse_public_key)},
    [SETTING_langfuse_secret_key] = {{"langfuse_secret_key", "KEY", "", "its secret key", false},
                                     SECRET,
                                     AT(langfuse_secret_key)},
    [SETTING_metrics_listen] = {{"metrics_listen", "ADDR", "",
                                 "serve /metrics here, to whoever comes", true},
                                LISTEN,
                                AT(metrics_listen)},
    [SETTING_metrics_token] = {{"metrics_token", "TOKEN", "",
                                "or on the other addresses, to who has this bearer token", false},
                               SECRET,
                               AT(metrics_token)},
    [SETTING_prices] = {{"prices", "LIST", "",
                         "cpu=0.05/h,memory=0.006/h,egress=0.09/G,execution=0,currency=USD", false},
                        TEXT,
                        AT(prices)},
    [SETTING_event_keep] = {{"event_keep", "NUMBER", "10000", "events that can be asked for",
                             false},
                            COUNT,
                            AT(event_keep),
                            100,
                            1000000},
    [SETTING_webhook_url] = {{"webhook_url", "URL", "", "where events are posted to", false},
                             URL,
                             AT(webhook_url)},
    [SETTING_webhook_secret] = {{"webhook_secret", "SECRET", "", "what signs them", false},
                                SECRET,
                                AT(webhook_secret)},
    [SETTING_webhook_events] = {{"webhook_events", "LIST", "",
                                 "which, if not all: sandbox.*,context.ended", false},
                                TEXT,
                                AT(webhook_events)},
    [SETTING_log] = {{"log", "auto|text|json", "auto",
                      "form of the log on standard error; auto: text on a terminal", false},
                     CHOICE,
                     AT(log),
                     .choices = log_choices},
    [SETTING_log_level] = {{"log_level", "LEVEL", "info", "debug, info, warn or error", false},
                           CHOICE,
                           AT(log_level),
                           .choices = level_choices},
    [SETTING_log_rate] = {{"log_rate", "NUMBER", "200", "lines in a second; 0: no limit", false},
                          COUNT,
                          AT(log_rate),
                          0,
                          1000000},
    [SETTING_log_size] = {{"log_size", "SIZE", "16M",
                           "of the file that sandglass logs --server reads; 0: none", true},
                          SIZE,
                          AT(log_size),
                          0,
                          TIB},
};

const struct setting_info *setting_info(enum setting k)
{
    return &rows[k].info;
}

void setting_env(enum setting k, char ret[SETTINGS_ENV_MAX])
{
    snprintf(ret, SETTINGS_ENV_MAX, "SANDGLASS_%s", rows[k].info.key);
    for (char *p = ret; *p; p++)
        if (*p >= 'a' && *p <= 'z')
            *p = (char)(*p - 'a' + 'A');
}

void setting_flag(enum setting k, char ret[SETTINGS_ENV_MAX])
{
    snprintf(ret, SETTINGS_ENV_MAX, "%s", rows[k].info.key);
    for (char *p = ret; *p; p++)
        if (*p == '_')
            *p = '-';
}

static void put_number(void *at, size_t size, uint64_t v)
{
    uint32_t small = (uint32_t)v;

    if (size == sizeof small)
        memcpy(at, &small, size);
    else
        memcpy(at, &v, size);
}

static uint64_t get_number(const void *at, size_t size)
{
    uint32_t small;
    uint64_t v;

    if (size == sizeof small)
        return memcpy(&small, at, size), small;
    return memcpy(&v, at, size), v;
}

/* A text must survive a line of the file form: settings_parse_text must read back what
 * settings_print wrote. */
static int set_text(const struct row *row, char *at, const char *what, const char *value,
                    struct sg_error *e)
{
    size_t n = strlen(value);

    for (const char *p = value; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return err_set(e, SG_ERR_INVALID, -EINVAL, "%s has a control character", what);
    if (n >= row->size)
        return err_set(e, SG_ERR_INVALID, -ENAMETOOLONG, "%s is longer than %zu bytes", what,
                       row->size - 1);
    if (row->kind == PATH && n > 0 && value[0] != '/')
        return err_set(e, SG_ERR_INVALID, -EINVAL, "%s needs an absolute path, not '%.64s'", what,
                       value);
    memcpy(at, value, n + 1);
    return 0;
}

/* The error must not repeat the value, which is secret. */
static int set_hidden(struct hidden *at, const char *what, const char *value, struct sg_error *e)
{
    for (const char *p = value; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return err_set(e, SG_ERR_INVALID, -EINVAL, "%s has a control character", what);
    if (!hidden_set(at, value, strlen(value)))
        return err_set(e, SG_ERR_INVALID, -ENAMETOOLONG, "%s is longer than %d bytes", what,
                       HIDDEN_MAX - 1);
    return 0;
}

static int set_url(const struct row *row, char *at, const char *what, const char *value,
                   struct sg_error *e)
{
    size_t scheme = strncmp(value, "http://", 7) == 0    ? 7
                    : strncmp(value, "https://", 8) == 0 ? 8
                                                         : 0;
    bool clean = scheme > 0 && value[scheme] != '\0' && value[scheme] != '/';

    for (const char *p = value; *p; p++)
        clean &= *p > 0x20 && *p < 0x7f && *p != '@' && *p != '#';
    if (value[0] && !clean)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "%s must be like https://host.example.com/path, without user, password and "
                       "fragment",
                       what);
    return set_text(row, at, what, value, e);
}

static int set_listen(const struct row *row, char *at, const char *what, const char *value,
                      struct sg_error *e)
{
    const char *cursor = value;
    struct address a;
    int r, n = 0;

    while ((r = address_next(what, &cursor, &a, e)) > 0)
        n++;
    if (r < 0)
        return r;
    if (n == 0 && row->info.normal[0])
        return err_set(e, SG_ERR_INVALID, -EINVAL, "%s names no address", what);
    return set_text(row, at, what, value, e);
}

static int set_modules(const struct row *row, char *at, const char *what, const char *value,
                       struct sg_error *e)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,";

    if (value[0] == '\0' || value[strspn(value, allowed)] != '\0')
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "%s '%.64s' is neither standard, science, none nor names of modules with "
                       "commas between",
                       what, value);
    return set_text(row, at, what, value, e);
}

static int set_yes_no(bool *at, const char *what, const char *value, struct sg_error *e)
{
    static const char *const yes[] = {"yes", "true", "on", "1"};
    static const char *const no[] = {"no", "false", "off", "0"};

    for (size_t i = 0; i < ARRAY_SIZE(yes); i++)
        if (strcmp(value, yes[i]) == 0 || strcmp(value, no[i]) == 0) {
            *at = strcmp(value, yes[i]) == 0;
            return 0;
        }
    return err_set(e, SG_ERR_INVALID, -EINVAL, "%s '%.64s' is neither yes nor no", what, value);
}

static int set_choice(const struct row *row, void *at, const char *what, const char *value,
                      struct sg_error *e)
{
    char list[64] = "";

    for (uint32_t i = 0; row->choices[i]; i++) {
        size_t n = strlen(list);
        if (strcmp(value, row->choices[i]) == 0) {
            put_number(at, row->size, i);
            return 0;
        }
        snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", row->choices[i]);
    }
    return err_set(e, SG_ERR_INVALID, -EINVAL, "%s '%.64s' is none of %s", what, value, list);
}

/* Formats a number for people or, if exact, so that settings_parse_text reads it back. */
static void format_number(const struct row *row, uint64_t v, bool exact, char *buf, size_t cap)
{
    if (row->kind == MILLI)
        snprintf(buf, cap, "%" PRIu64 ".%03u", v / 1000, (unsigned)(v % 1000));
    else if (row->kind == SIZE && !exact)
        format_size(v, buf, cap);
    else if (row->kind == TIME && !exact)
        format_duration_us(v * 1000, buf, cap);
    else
        snprintf(buf, cap, "%" PRIu64 "%s", v, row->kind == TIME ? "ms" : "");
}

static int set_number(const struct row *row, void *at, const char *what, const char *value,
                      struct sg_error *e)
{
    char min[32], max[32];
    uint32_t milli = 0;
    uint64_t v = 0;
    int r;

    if (row->kind == SIZE) {
        r = parse_size(what, value, &v, e);
    } else if (row->kind == TIME) {
        r = parse_duration_ms(what, value, &v, e);
    } else if (row->kind == MILLI) {
        r = parse_milli(what, value, &milli, e);
        v = milli;
    } else {
        r = parse_u64(what, value, row->min, row->max, &v, e);
    }
    if (r < 0)
        return r;
    format_number(row, row->min, false, min, sizeof min);
    format_number(row, row->max, false, max, sizeof max);
    if (v < row->min || v > row->max)
        return err_set(e, SG_ERR_INVALID, -ERANGE, "%s '%.64s' is out of range: use %s to %s", what,
                       value, min, max);
    put_number(at, row->size, v);
    return 0;
}

int settings_set(struct settings *s, enum setting k, const char *what, const char *value,
                 struct sg_error *e)
{
    const struct row *row = &rows[k];
    void *at = (char *)s + row->offset;

    switch (row->kind) {
    case TEXT:
    case PATH:
        return set_text(row, at, what, value, e);
    case SECRET:
        return set_hidden(at, what, value, e);
    case URL:
        return set_url(row, at, what, value, e);
    case LISTEN:
        return set_listen(row, at, what, value, e);
    case MODULES:
        return set_modules(row, at, what, value, e);
    case YES_NO:
        return set_yes_no(at, what, value, e);
    case CHOICE:
        return set_choice(row, at, what, value, e);
    case SIZE:
    case MILLI:
    case COUNT:
    case TIME:
        break;
    }
    return set_number(row, at, what, value, e);
}

void settings_init(struct settings *s)
{
    *s = (struct settings){0};
    for (enum setting k = 0; k < SETTING_MAX_; k++) {
        int r = settings_set(s, k, rows[k].info.key, rows[k].info.normal, NULL);
        assert(r == 0);
    }
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Turns dots into underscores: `egress.dns` is the same key as `egress_dns`. */
static void join_dotted(char *key)
{
    for (; (key = strchr(key, '.')); key++)
        *key = '_';
}

/* Removes the blanks around a text, in place. */
static char *trim(char *s)
{
    char *end = s + strlen(s);

    while (end > s && is_blank(end[-1]))
        *--end = '\0';
    while (is_blank(*s))
        s++;
    return s;
}

static int parse_line(struct settings *s, const char *where, char *line, struct sg_error *e)
{
    char *equals = strchr(line, '='), what[256];

    /* The error shows the first word only, since the next may be a secret. */
    if (!equals) {
        size_t word = strcspn(line, " \t");
        return err_set(e, SG_ERR_INVALID, -EINVAL, "%s: write 'key = value': '%.*s' has no '='",
                       where, word < 64 ? (int)word : 64, line);
    }
    *equals = '\0';
    char *key = trim(line), *value = trim(equals + 1);
    join_dotted(key);
    for (enum setting k = 0; k < SETTING_MAX_; k++)
        if (strcmp(key, rows[k].info.key) == 0) {
            snprintf(what, sizeof what, "%s: %s", where, key);
            return settings_set(s, k, what, value, e);
        }
    return err_set(e, SG_ERR_INVALID, -EINVAL,
                   "%s: unknown setting '%.64s' (see sandglass.conf(5))", where, key);
}

int settings_parse_text(struct settings *s, const char *name, char *text, struct sg_error *e)
{
    char *rest = text, *line, where[192];

    for (unsigned number = 1; (line = strsep(&rest, "\n")); number++) {
        line = trim(line);
        if (*line == '\0' || *line == '#')
            continue;
        snprintf(where, sizeof where, "%.160s:%u", name, number);
        int r = parse_line(s, where, line, e);
        if (r < 0)
            return r;
    }
    return 0;
}

int settings_parse_env(struct settings *s, struct sg_error *e)
{
    for (enum setting k = 0; k < SETTING_MAX_; k++) {
        char name[SETTINGS_ENV_MAX];
        setting_env(k, name);
        const char *value = getenv(name);
        int r = value ? settings_set(s, k, name, value, e) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

/* The domain becomes a part of host names, so it must be valid in one. */
static int check_domain(const char *domain, struct sg_error *e)
{
    static const char host[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
    size_t n = strspn(domain, host);
    uint64_t port;

    if (domain[0] == '\0')
        return 0;
    if (n == 0 || domain[0] == '.' || domain[0] == '-' ||
        (domain[n] &&
         (domain[n] != ':' || parse_u64("", domain + n + 1, 1, 65535, &port, NULL) < 0)))
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "domain '%.64s' is no host name: use for example box.example.com or "
                       "box.test:8443",
                       domain);
    return 0;
}

static int check_listen(const struct settings *s, struct sg_error *e)
{
    const char *cursor = s->listen;
    struct address a;
    int r;

    while ((r = address_next("listen", &cursor, &a, e)) > 0) {
        char text[ADDRESS_TEXT_MAX];
        if (a.loopback || s->tls_cert[0] || s->insecure)
            continue;
        address_format(&a, text);
        return err_set(e, SG_ERR_DENIED, -EPERM,
                       "%s can be reached from other machines: give --tls-cert and --tls-key, or "
                       "--insecure if something in front of it does TLS",
                       text);
    }
    return r;
}

enum settings_store settings_store(const struct settings *s)
{
    return hidden_equals(&s->store, "sqlite", 6)   ? STORE_SQLITE
           : hidden_equals(&s->store, "memory", 6) ? STORE_MEMORY
                                                   : STORE_POSTGRES;
}

void settings_forget_secrets(struct settings *s)
{
    for (enum setting k = 0; k < SETTING_MAX_; k++)
        if (rows[k].kind == SECRET)
            hidden_wipe((struct hidden *)(void *)((char *)s + rows[k].offset));
    hidden_set(&s->store, "memory", 6);
}

/* The error must not repeat the address, which may have a password in it. */
static int check_store(const struct settings *s, struct sg_error *e)
{
    static const char *const known[] = {"postgresql://", "postgres://"};

    if (settings_store(s) != STORE_POSTGRES)
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (strncmp(hidden_reveal(&s->store), known[i], strlen(known[i])) == 0)
            return 0;
    return err_set(e, SG_ERR_INVALID, -EINVAL,
                   "store is neither sqlite nor memory nor begins with postgresql://");
}

static int check_url(const char *url, struct sg_error *e)
{
    bool known = strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
    size_t len = strlen(url);

    for (size_t i = 0; i < len; i++)
        known &= url[i] > 0x20 && url[i] < 0x7f;
    if (len > 0 && (!known || url[len - 1] == '/'))
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "public_url must be like https://box.example.com, without a slash at its "
                       "end: '%s'",
                       url);
    return 0;
}

int settings_check(const struct settings *s, struct sg_error *e)
{
    struct prices prices;
    int r = check_store(s, e);

    if (r == 0)
        r = check_url(s->public_url, e);
    if (r == 0)
        r = prices_parse(s->prices, &prices, e);
    if (r < 0)
        return r;
    if (s->execution_timeout_ms > s->execution_timeout_max_ms)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "execution_timeout is longer than execution_timeout_max");
    if (s->checkpoint_keep > s->checkpoint_max)
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "checkpoint_keep %u is more than checkpoint_max %u", s->checkpoint_keep,
                       s->checkpoint_max);

    if (!s->tls_cert[0] != !s->tls_key[0])
        return err_set(e, SG_ERR_INVALID, -EINVAL,
                       "tls_cert and tls_key go together: %s is missing",
                       s->tls_cert[0] ? "tls_key" : "tls_cert");
    if (s->pool_min > s->pool_max)
        return err_set(e, SG_ERR_INVALID, -EINVAL, "pool_min %u is more than pool_max %u",
                       s->pool_min, s->pool_max);
    if (!s->state[0])
        return err_set(e, SG_ERR_INVALID, -EINVAL, "state names no directory");
    if ((s->machine_memory && s->machine_memory < 64 * MIB) ||
        (s->tenant_memory && s->tenant_memory < 64 * MIB))
        return err_set(e, SG_ERR_INVALID, -ERANGE,
                       "machine_memory and tenant_memory are 0, or 64M at least");
    r = check_domain(s->domain, e);
    return r < 0 ? r : check_listen(s, e);
}

static bool is_text(const struct row *row)
{
    return row->kind == TEXT || row->kind == PATH || row->kind == URL || row->kind == LISTEN ||
           row->kind == MODULES;
}

bool settings_same(const struct settings *a, const struct settings *b, enum setting k)
{
    const struct row *row = &rows[k];
    const char *x = (const char *)a + row->offset, *y = (const char *)b + row->offset;

    return is_text(row) ? strcmp(x, y) == 0 : memcmp(x, y, row->size) == 0;
}

void settings_copy(struct settings *to, const struct settings *from, enum setting k)
{
    memcpy((char *)to + rows[k].offset, (const char *)from + rows[k].offset, rows[k].size);
}

void settings_print(const struct settings *s, struct strbuf *out)
{
    for (enum setting k = 0; k < SETTING_MAX_; k++) {
        const struct row *row = &rows[k];
        const char *at = (const char *)s + row->offset;
        char number[32];

        strbuf_addf(out, "%s = ", row->info.key);
        if (is_text(row)) {
            strbuf_addstr(out, at);
        } else if (row->kind == SECRET) {
            strbuf_addstr(out, hidden_reveal((const struct hidden *)(const void *)at));
        } else if (row->kind == YES_NO) {
            strbuf_addstr(out, *(const bool *)at ? "yes" : "no");
        } else if (row->kind == CHOICE) {
            strbuf_addstr(out, row->choices[get_number(at, row->size)]);
        } else {
            format_number(row, get_number(at, row->size), true, number, sizeof number);
            strbuf_addstr(out, number);
        }
        strbuf_addch(out, '\n');
    }
}
