/* What a template that was built gives to its sandboxes, beside its files: a JSON object, kept with
 * the build, with snapshots of its sandboxes, and in a sandbox's spec.
 *
 *   {"user": "user", "workdir": "/app", "envs": {"A": "1"}, "startCmd": "...", "readyCmd": "..."}
 *
 * Each of them may be missing. A template that the server brings has none of them: NULL. */
#pragma once

#include <jansson.h>

#define DEFAULTS_USER "user"

const char *defaults_user(const json_t *defaults);    /* "user" */
const char *defaults_workdir(const json_t *defaults); /* "": the user's home */
const char *defaults_start(const json_t *defaults);   /* NULL: none */
const char *defaults_ready(const json_t *defaults);   /* NULL: none */
json_t *defaults_envs(const json_t *defaults);        /* borrowed; NULL: none */
/* Reads what was stored. NULL: nothing, or nothing that can be read. */
json_t *defaults_load(const char *text);
