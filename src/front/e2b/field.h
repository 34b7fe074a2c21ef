/* Fields of a JSON object that a client sent. A field that is absent or null leaves the output as
 * it is; one of the wrong type is an error that names it. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

#define FIELD_ERROR "Error when parsing request: "

/* The value, or NULL if it is absent or null. */
const json_t *field_get(const json_t *object, const char *name);
/* Allows no field but these: the error names the first other one. */
int fields_known(const json_t *object, const char *const *names, size_t n, struct sg_error *e);
int field_bool(const json_t *object, const char *name, bool *ret, struct sg_error *e);
/* *ret: -1 if the field is absent, else 0 or 1. */
int field_tristate(const json_t *object, const char *name, int *ret, struct sg_error *e);
/* A 32-bit number, as all of E2B's are: no fraction, no text. */
int field_int(const json_t *object, const char *name, bool *ret_given, int32_t *ret,
              struct sg_error *e);
/* A string of at most `max` bytes, which lives as long as the object. */
int field_string(const json_t *object, const char *name, size_t max, const char **ret,
                 struct sg_error *e);
int field_object(const json_t *object, const char *name, const json_t **ret, struct sg_error *e);
int field_array(const json_t *object, const char *name, size_t max, const json_t **ret,
                struct sg_error *e);
/* An object of strings, with at most `max` bytes of keys and values. */
int field_strings(const json_t *object, const char *name, size_t max, const json_t **ret,
                  struct sg_error *e);

/* The lifetime of a sandbox in seconds, from the field `timeout`: at least min_s (0 or 1) and at
 * most max_ms; default_s if it is absent. */
int field_timeout(const json_t *object, int32_t min_s, uint32_t default_s, uint64_t max_ms,
                  uint64_t *ret_ms, struct sg_error *e);
