/* A line that shows how far a copy is. It appears only on a terminal, once the copy has taken half
 * a second, and vanishes at the end. */
#pragma once

#include "lib/base/base.h"

struct progress {
    bool on, drawn;
    const char *name;
    uint64_t done, total; /* bytes; total 0: not known */
    uint64_t files;       /* 0: one file, not counted */
    uint64_t started_ns, drawn_ns;
};

/* quiet: the line never appears. */
void progress_init(struct progress *p, const char *name, uint64_t total, bool quiet);
void progress_add(struct progress *p, uint64_t bytes);
/* Removes the line; the next progress_add shows it again. */
void progress_clear(struct progress *p);

/* Makes the line, at most `columns` wide:
 *   data.bin  [=======>      ]  53%  540 MiB of 1 GiB  270 MiB/s  2 s left
 * Without a total:
 *   data.bin  540 MiB  270 MiB/s */
void progress_format(const struct progress *p, uint64_t elapsed_ms, size_t columns, char *buf,
                     size_t cap);
