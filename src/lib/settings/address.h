/* Addresses to listen on: "127.0.0.1:3000", "[::1]:3000", "localhost:3000". No names are looked
 * up; localhost is 127.0.0.1. Port 0 lets the kernel choose one. */
#pragma once

#include <sys/socket.h>

#include "lib/base/err.h"

#define ADDRESS_TEXT_MAX 64

struct address {
    struct sockaddr_storage addr;
    socklen_t len;
    bool loopback; /* no other machine can reach it */
};

/* Parses one address. `what` names the setting in the error. */
int address_parse(const char *what, const char *text, struct address *ret, struct sg_error *e);
/* Takes the next one of a comma-separated list and moves the cursor: 1, or 0 at the end, or an
 * error. */
int address_next(const char *what, const char **cursor, struct address *ret, struct sg_error *e);
/* Writes the address in the form that address_parse reads. */
void address_format(const struct address *a, char ret[ADDRESS_TEXT_MAX]);
