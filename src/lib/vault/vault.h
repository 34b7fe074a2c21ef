/* Secrets: how they are held in memory, and how they are sealed for storage.
 *
 * Whoever has the public key can seal a text, and only the holder of the private key can open it.
 * So the front, which parses requests, can store a secret and can never read it back; the guard,
 * which uses secrets, has the private key, in a file of its own directory. Sealing uses X25519 with
 * a fresh key for each text, HKDF-SHA256 and ChaCha20-Poly1305, all from OpenSSL. The `purpose` of
 * a text, such as "TENANT/NAME", is authenticated with it: a text that was moved to another tenant
 * or name does not open.
 *
 * A `struct secret` is the only form in which a secret is held. Its bytes are in memory of their
 * own: locked, not in core dumps, not inherited by children, wiped when freed. There is no way to
 * print one. */
#pragma once

#include "lib/base/err.h"
#include "lib/text/strbuf.h"

#define VAULT_PUBLIC_LEN 32
#define VAULT_SECRET_MAX (64u * 1024)
#define VAULT_SEALED_MAX (VAULT_SECRET_MAX * 4 / 3 + 256) /* as text */

/* ---- in memory ------------------------------------------------------------------------------- */

struct secret {
    uint8_t *bytes; /* NULL: none. Followed by a NUL that does not count */
    size_t len;
};
/* Copies bytes into the secret. -ENOMEM: no more memory can be locked; -E2BIG. */
int secret_set(struct secret *s, const void *bytes, size_t len);
void secret_done(struct secret *s);
/* From now on, this process leaves no core dumps, and no debugger can attach to it. */
void vault_harden_process(void);

/* ---- at rest --------------------------------------------------------------------------------- */

struct vault_key;
/* Opens the private key in the directory's file `name`, which is made (0600) if it is not there. */
int vault_key_open(int dirfd, const char *name, struct vault_key **ret, struct sg_error *e);
/* Makes a key that is in no file: for tests, and for a guard that lives as long as one sandbox. */
struct vault_key *vault_key_new(void);
void vault_key_free(struct vault_key *k); /* NULL is allowed */
void vault_key_public(const struct vault_key *k, uint8_t ret[VAULT_PUBLIC_LEN]);
/* Derives bytes that only the key's holder can compute, the same each time for the same label. */
void vault_key_derive(const struct vault_key *k, const char *label, uint8_t *ret, size_t len);

/* Appends base64 text to out. */
int vault_seal(const uint8_t public_key[VAULT_PUBLIC_LEN], const char *purpose, const void *bytes,
               size_t len, struct strbuf *out, struct sg_error *e);
/* Opens a sealed text. -EBADMSG: it was not sealed for this key and purpose, or was changed. */
int vault_open(const struct vault_key *k, const char *purpose, const char *sealed,
               struct secret *ret, struct sg_error *e);
