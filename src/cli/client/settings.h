/* The server's address and our key, read from the environment as the E2B SDKs do:
 *
 *   E2B_API_KEY       the key
 *   E2B_API_URL       the control plane           default https://api.DOMAIN
 *   E2B_SANDBOX_URL   what answers for sandboxes  default by DOMAIN, see settings_port_url
 *   E2B_DOMAIN        may have a port             default e2b.app
 *   E2B_DEBUG=true    one sandbox on this machine, without a control plane
 *
 * One thing differs: with none of the last four set, the server is the one on this machine. */
#pragma once

#include "lib/base/err.h"

#define SETTINGS_LOCAL_URL "http://127.0.0.1:3000"
#define SETTINGS_ENVD_PORT "49983" /* the daemon of a sandbox: processes and files */

struct settings {
    char *api_key;     /* NULL in debug mode only */
    char *api_url;     /* without a slash at its end */
    char *sandbox_url; /* no slash at its end; NULL: the host name tells the sandbox */
    char *domain;
    bool debug;
};

/* Loads the settings. url replaces both URLs, key_file the variable with the key; each may be NULL.
 * Every error here is bad usage. */
int settings_load(struct settings *ret, const char *url, const char *key_file, struct sg_error *e);
void settings_done(struct settings *s);

/* The base URL of a port of a sandbox. `domain` is the domain that the server named for the
 * sandbox; "" or NULL if it named none. */
char *settings_port_url(const struct settings *s, const char *port, const char *id,
                        const char *domain);
