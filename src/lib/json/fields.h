/* Reads the fields of a JSON object that somebody else wrote. All such objects are checked here, so
 * that errors have one form: `'field' must be a string`.
 *
 *     struct fields in = request_fields(body, e);
 *     ask.label = field_text(&in, "label", LABEL_MAX, NULL);
 *     ask.wait_ms = field_count(&in, "waitMs", 0, WAIT_MAX_MS, 0);
 *     return in.r;
 *
 * The first error stays. After it no function looks at the object or changes the message, and each
 * reader returns its fallback: so a caller reads all fields, and asks once, at the end, whether they
 * were right. A field that is absent or null has no value, and gives the fallback too. Texts and
 * trees live as long as the object.
 *
 * Objects that need no check, since a wrong value does no harm, are read with lib/json/values.h. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

struct fields {
    const json_t *object; /* NULL: no field has a value */
    const char *prefix;   /* begins every message */
    struct sg_error *e;
    bool bare;            /* messages name fields without quotation marks */
    bool strict;          /* null is a value, and of the wrong type */
    int r;                /* 0, or the first error */
    struct fields *outer; /* the object that has this one in it: `r` is there */
};

/* The value. NULL: there is none. */
json_t *field_get(const struct fields *in, const char *name);
bool field_flag(struct fields *in, const char *name, bool fallback);
/* -1, 0 or 1: -1 if there is no value. */
int field_tristate(struct fields *in, const char *name);
/* A number of 32 bits, as all of E2B's are: no fraction, no text. */
int32_t field_int(struct fields *in, const char *name, int32_t fallback);
/* A whole number from min to max. */
uint64_t field_count(struct fields *in, const char *name, uint64_t min, uint64_t max,
                     uint64_t fallback);
/* A number from min to max, perhaps with a fraction. */
double field_real(struct fields *in, const char *name, double min, double max, double fallback);
/* At most `max` bytes. */
const char *field_text(struct fields *in, const char *name, size_t max, const char *fallback);
/* A text that must be there, copied to ret. */
void field_copy(struct fields *in, const char *name, char *ret, size_t cap);
/* The index of a text in `words`. what: the words, for the message. */
size_t field_word(struct fields *in, const char *name, const char *const *words, size_t n,
                  size_t fallback, const char *what);
/* At most `max` entries. */
json_t *field_array(struct fields *in, const char *name, size_t max);
/* An object of texts, with at most `max` bytes of keys and values. */
json_t *field_texts(struct fields *in, const char *name, size_t max);
/* The fields of an object: of one that is a field of `in`, or of any other value in it. */
struct fields field_object(struct fields *in, const char *name);
struct fields fields_within(struct fields *in, const json_t *object);

/* Allows no field but these: the error names the first other one. */
#define fields_known(in, ...) fields_only(in, (const char *const[]){__VA_ARGS__, NULL})
void fields_only(struct fields *in, const char *const *names);

/* ---- other checks ---------------------------------------------------------------------------- */

bool fields_ok(const struct fields *in);
/* An error, with the prefix in front of it; without; and "'name' must be WHAT". Each returns the
 * first error. */
int field_wrong(struct fields *in, const char *fmt, ...) PRINTF(2, 3);
int fields_fail(struct fields *in, enum sg_error_kind kind, int code, const char *fmt, ...)
    PRINTF(4, 5);
#define fields_invalid(in, ...) fields_fail(in, SG_ERR_INVALID, -EINVAL, __VA_ARGS__)
int field_must(struct fields *in, const char *name, const char *what);
/* Calls a check that fills in->e itself, unless there is an error already. */
#define fields_check(in, call)           \
    do {                                 \
        if (fields_ok(in))               \
            *fields_result(in) = (call); \
    } while (0)
int *fields_result(struct fields *in);
