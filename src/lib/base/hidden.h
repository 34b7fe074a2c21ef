/* A secret that is a setting or a part of one: a token, a password.
 *
 * It is a struct and no pointer to characters, so that no format string takes it (-Wformat refuses
 * one), no JSON writer and no strbuf either: what is to be logged cannot have one in it by mistake.
 * The one way to the bytes is hidden_reveal; tools/lint has the list of files that may call it.
 * Secrets of tenants have a type of their own, with locked memory (lib/vault/vault.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define HIDDEN_MAX 1024

struct hidden {
    char bytes[HIDDEN_MAX]; /* NUL-terminated; not for anybody else to read */
};

/* False: it is longer than HIDDEN_MAX - 1; nothing was changed. */
bool hidden_set(struct hidden *s, const char *bytes, size_t len);
bool hidden_empty(const struct hidden *s);
/* In constant time. */
bool hidden_equals(const struct hidden *s, const char *bytes, size_t len);
/* For who must send it where it belongs. Valid as long as the secret. */
const char *hidden_reveal(const struct hidden *s);
void hidden_wipe(struct hidden *s);
