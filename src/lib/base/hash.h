/* Hashes of bytes, for tables.
 *
 * Keys come from clients and from sandboxes. If they could tell which keys share a bucket, they
 * could make every search slow. So hash_bytes is SipHash-1-3 under a key that each process draws for
 * itself. hash_stable is the same everywhere and for ever, for names and choices that must outlive a
 * process: never for a table.
 *
 * `before` is the hash of what comes before, 0 at the beginning: a key of two texts is
 * hash_text(hash_text(0, a), b). */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(uint64_t before, const void *data, size_t len);
uint64_t hash_text(uint64_t before, const char *text);
uint64_t hash_stable(uint64_t before, const void *data, size_t len);
