#include "lib/command/suggest.h"

#include "lib/base/base.h"

#define WORD_MAX 32

/* Number of insertions, deletions and substitutions between two words (Levenshtein), keeping one
 * row of the table at a time. */
static size_t edits(const char *a, const char *b)
{
    size_t row[WORD_MAX + 1], a_len = strlen(a), b_len = strlen(b);

    if (a_len > WORD_MAX || b_len > WORD_MAX)
        return WORD_MAX;
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[b_len];
}

const char *suggest_nearest(const char *word, const char *const *candidates, size_t n)
{
    const char *nearest = NULL;
    size_t least = 1 + strlen(word) / 3;

    for (size_t i = 0; i < n; i++) {
        if (!candidates[i])
            continue;
        size_t distance = edits(word, candidates[i]);
        if (distance <= least && (!nearest || distance < least)) {
            least = distance;
            nearest = candidates[i];
        }
    }
    return nearest;
}
