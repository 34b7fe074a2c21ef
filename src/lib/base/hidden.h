/* A secret that is a setting or a part of one: a token, a password.
 *
 * The type is a struct and no pointer to characters, so that no format string (-Wformat refuses
 * it), no JSON writer and no strbuf takes it: nobody can log a secret by mistake. The only way to
 * the bytes is hidden_reveal; tools/lint has the list of files that may call it. Secrets of tenants
 * have a type of their own, with locked memory (lib/vault/vault.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define HIDDEN_MAX 1024

struct hidden {
    char bytes[HIDDEN_MAX]; /* NUL-terminated; only hidden.c reads it */
};

/* False: the secret is longer than HIDDEN_MAX - 1, and nothing was changed. */
bool hidden_set(struct hidden *s, const char *bytes, size_t len);
bool hidden_empty(const struct hidden *s);
/* Compares in constant time. */
bool hidden_equals(const struct hidden *s, const char *bytes, size_t len);
/* Returns the secret, for code that must send it where it belongs. Valid as long as the struct. */
const char *hidden_reveal(const struct hidden *s);
void hidden_wipe(struct hidden *s);
