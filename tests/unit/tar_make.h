/* Makes tar archives, right ones and wrong ones, for tests. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "lib/text/strbuf.h"

#define TAR_MADE_MAX (4u << 20)

static inline void tar_made_sum(char h[512])
{
    unsigned sum = 0;

    memset(h + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += (unsigned char)h[i];
    snprintf(h + 148, 8, "%06o", sum);
}

static inline void tar_made_add(struct strbuf *out, char type, const char *name, const char *link,
                                unsigned mode, const char *data, size_t len)
{
    static const char zeros[512];
    char h[512] = {0};

    memcpy(h, name, strnlen(name, 100));
    snprintf(h + 100, 8, "%07o", mode);
    snprintf(h + 108, 8, "%07o", 0u);
    snprintf(h + 116, 8, "%07o", 0u);
    snprintf(h + 124, 12, "%011o", (unsigned)(len & 0x3fffffff));
    snprintf(h + 136, 12, "%011o", 0u);
    h[156] = type;
    memcpy(h + 157, link, strnlen(link, 100));
    memcpy(h + 257, "ustar\00000", 8);
    tar_made_sum(h);
    strbuf_add(out, h, sizeof(h));
    strbuf_add(out, data, len);
    strbuf_add(out, zeros, (512 - len % 512) % 512);
}

static inline void tar_made_file(struct strbuf *out, const char *name, unsigned mode,
                                 const char *text)
{
    tar_made_add(out, '0', name, "", mode, text, strlen(text));
}

static inline void tar_made_pax(struct strbuf *out, const char *key, const char *value)
{
    char record[8192];
    size_t len = strlen(key) + strlen(value) + 3, digits = 1;

    while (snprintf(NULL, 0, "%zu", len + digits) != (int)digits)
        digits++;
    int n = snprintf(record, sizeof(record), "%zu %s=%s\n", len + digits, key, value);
    tar_made_add(out, 'x', "PaxHeader", "", 0644, record, (size_t)n);
}

static inline void tar_made_end(struct strbuf *out)
{
    static const char zeros[1024];

    strbuf_add(out, zeros, sizeof(zeros));
}
