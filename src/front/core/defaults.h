/* What a template that was built gives to its sandboxes, beside its files: a JSON object, kept with
 * the build, with snapshots of its sandboxes, and in a sandbox's spec.
 *
 *   {"user": "user", "home": "/home/user", "workdir": "/app", "envs": {"A": "1"}, "startCmd": "...", "readyCmd": "..."}
 *
 * Each of them may be missing. A template that the server brings has none of them: NULL. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#define DEFAULTS_USER "user"

const char *defaults_user(const json_t *defaults);    /* "user" */
const char *defaults_home(const json_t *defaults);    /* "": the one that each sandbox has */
const char *defaults_workdir(const json_t *defaults); /* "": the user's home */
const char *defaults_start(const json_t *defaults);   /* NULL: none */
const char *defaults_ready(const json_t *defaults);   /* NULL: none */
json_t *defaults_envs(const json_t *defaults);        /* borrowed; NULL: none */
/* Whether `name` has the form of a user's name, or is an id: ^[A-Za-z0-9_][A-Za-z0-9._-]{0,31}$ */
bool user_name_valid(const char *name);
/* Reads what was stored. NULL: nothing, or nothing that can be read. */
json_t *defaults_load(const char *text);
/* The variables of an image's config (JSON; NULL: it has none). Whether a sandbox of it has its user, and its
 * directory, a build finds out (steps_of_image). */
json_t *defaults_of_image(const char *config);
