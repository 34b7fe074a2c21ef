/* Reads the answers of servers, with jansson. Everything in an answer may be missing or of another
 * type; these functions then return a default. */
#pragma once

#include "lib/base/err.h"
#include "lib/json/values.h"

#define JR_DIGITS JSON_REAL_PRECISION(15) /* more digits would show rounding errors */

/* Parses an answer into a tree. -EPROTO if it is not JSON. */
int jr_parse(const char *text, size_t len, json_t **ret, struct sg_error *e);
static inline void jr_free_p(json_t **p)
{
    json_decref(*p);
}

/* A number may be written as text, as protobuf does with large numbers. */
double jr_number(const json_t *object, const char *key);  /* 0 by default */
uint64_t jr_count(const json_t *object, const char *key); /* the same, never negative */

/* The object in the array whose member is this text, or NULL. */
const json_t *jr_find(const json_t *array, const char *key, const char *text);

/* Writes out what was printed so far. 0 or an error. */
int jr_flush(struct sg_error *e);
/* Prints the tree and a line feed on standard output. 0 or an error. */
int jr_print(const json_t *tree, struct sg_error *e);
