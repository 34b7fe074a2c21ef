/* UUIDs, where others expect them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define UUID_LEN 36

void uuid_random(char ret[UUID_LEN + 1]);
/* Makes a UUID of version 8, a scheme of one's own: the same one for the same bytes. */
void uuid_from_bytes(const uint8_t bytes[16], char ret[UUID_LEN + 1]);
bool uuid_valid(const char *s); /* in lower case */
