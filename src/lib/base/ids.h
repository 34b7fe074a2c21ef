/* Names of sandboxes: 20 characters of [a-z0-9], 103 bits from the kernel's generator. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define ID_LEN 20

void id_random(char ret[ID_LEN + 1]);
/* Makes a name from ID_LEN bytes: the same name for the same bytes. */
void id_from_bytes(const unsigned char bytes[ID_LEN], char ret[ID_LEN + 1]);
bool id_valid(const char *s);
/* ID, or ID.ID: the name of something that stands on another. */
bool id_valid_on(const char *s);
