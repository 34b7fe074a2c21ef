/* The settings of a server. One table (settings_table.h) has the name, the type and the explanation
 * of each; `struct settings`, the configuration file, the environment, the flags of `sandglass serve`
 * and its manual all follow this table.
 *
 *   key in the file    tls_cert = /etc/ssl/server.pem
 *   environment        SANDGLASS_TLS_CERT=/etc/ssl/server.pem
 *   flag               --tls-cert /etc/ssl/server.pem
 *
 * A flag overrides the environment, and the environment overrides the file. The warden gives the
 * front the result as text, in the form of the file. */
#pragma once

#include "lib/base/err.h"
#include "lib/base/hidden.h"
#include "lib/text/strbuf.h"

#define SETTINGS_TEXT_MAX  (64u * 1024)
#define SETTINGS_PATH_MAX  512
#define SETTINGS_ENV_MAX   48
#define SETTINGS_LISTEN    "127.0.0.1:3000"
#define SETTINGS_STATE_DIR "/var/lib/sandglass/server"

enum settings_store { STORE_SQLITE, STORE_MEMORY, STORE_POSTGRES };
enum settings_log { SETTINGS_LOG_AUTO, SETTINGS_LOG_TEXT, SETTINGS_LOG_JSON };
enum settings_otlp { OTLP_PROTOBUF, OTLP_JSON };
enum settings_fork { FORK_AUTO, FORK_PLAIN };
enum settings_egress { EGRESS_OPEN, EGRESS_BLOCK };
enum settings_path {
    EGRESS_PATH_AUTO,
    EGRESS_PATH_SK_LOOKUP,
    EGRESS_PATH_TPROXY,
    EGRESS_PATH_REDIRECT
};
enum settings_fake { FAKE_AUTO, FAKE_YES, FAKE_NO };
enum settings_sanitise { SETTINGS_ENFORCE, SETTINGS_REPORT_ONLY, SETTINGS_OFF };
enum settings_level { LEVEL_DEBUG, LEVEL_INFO, LEVEL_WARN, LEVEL_ERROR, LEVEL_MAX_ };

/* A sandbox that is paused with its memory counts for at least this much: whatever ran in it, it
 * has a slot, descriptors and an agent. */
#define PAUSED_LEAST (16u * 1024 * 1024)

#define SETTINGS_AUTO UINT64_MAX /* an AUTO_SIZE that is left to the server */

#define FIELD_TEXT(key, low, high)      char key[high];
#define FIELD_PATH(key, low, high)      char key[high];
#define FIELD_URL(key, low, high)       char key[high];
#define FIELD_LISTEN(key, low, high)    char key[high];
#define FIELD_MODULES(key, low, high)   char key[high];
#define FIELD_SECRET(key, low, high)    struct hidden key;
#define FIELD_YES_NO(key, low, high)    bool key;
#define FIELD_SIZE(key, low, high)      uint64_t key;
#define FIELD_AUTO_SIZE(key, low, high) uint64_t key;
#define FIELD_TIME(key, low, high)      uint64_t key##_ms;
#define FIELD_COUNT(key, low, high)     uint32_t key;
#define FIELD_MILLI(key, low, high)     uint32_t key##_milli;
#define FIELD_CHOICE(key, low, high)    enum low key;

struct settings {
#define SETTING(kind, key, when, low, high, argument, normal, help) FIELD_##kind(key, low, high)
#include "lib/settings/settings_table.h"
#undef SETTING
};

enum setting {
#define SETTING(kind, key, when, low, high, argument, normal, help) SETTING_##key,
#include "lib/settings/settings_table.h"
#undef SETTING
    SETTING_MAX_
};

struct setting_info {
    const char *key;
    const char *argument; /* "SIZE" in the help; NULL: yes or no, and a flag without a value */
    const char *normal;   /* the default, as text */
    const char *help;
    bool fixed; /* cannot change while the server runs */
};
const struct setting_info *setting_info(enum setting k);
/* "SANDGLASS_TLS_CERT" and "tls-cert". */
void setting_env(enum setting k, char ret[SETTINGS_ENV_MAX]);
void setting_flag(enum setting k, char ret[SETTINGS_ENV_MAX]);

void settings_init(struct settings *s); /* the defaults */
/* `what` names the origin of the value in the error. */
int settings_set(struct settings *s, enum setting k, const char *what, const char *value,
                 struct sg_error *e);
/* Lines `key = value`; empty ones and those that begin with # are skipped. `name` is the file's in
 * errors. The text is changed. */
int settings_parse_text(struct settings *s, const char *name, char *text, struct sg_error *e);
int settings_parse_env(struct settings *s, struct sg_error *e);
/* Checks settings against each other. */
int settings_check(const struct settings *s, struct sg_error *e);
enum settings_store settings_store(const struct settings *s);
/* For a process that need not know them: empties all secrets, and sets the store to "memory", since
 * the database's address may have a password. */
void settings_forget_secrets(struct settings *s);
/* Whether a and b have the same value for a key. */
bool settings_same(const struct settings *a, const struct settings *b, enum setting k);
/* Copies the value of one key. */
void settings_copy(struct settings *to, const struct settings *from, enum setting k);
/* Prints all settings in the form that settings_parse_text reads. */
void settings_print(const struct settings *s, struct strbuf *out);
