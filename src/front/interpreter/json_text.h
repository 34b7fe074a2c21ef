/* JSON from a kernel, checked as it comes and written on without line ends, in ASCII.
 *
 * Nothing of it is kept but a number or a word until it is whole, so a value may have any size and
 * costs no memory; and numbers stay as they were written, however long. What is wrong with it may
 * show late, when its first part has left: then json_text_close ends it as some valid value, and
 * the caller says that it does not count. */
#pragma once

#include "front/interpreter/lines.h"

#define JSON_TEXT_DEPTH 64
#define JSON_TEXT_TOKEN 352 /* a double of any size, written out in full */

enum json_text_state {
    JSON_TEXT_VALUE,
    JSON_TEXT_FIRST_VALUE, /* of an array, or its end */
    JSON_TEXT_FIRST_KEY,   /* of an object, or its end */
    JSON_TEXT_KEY,
    JSON_TEXT_COLON,
    JSON_TEXT_AFTER, /* a value: comma or end */
    JSON_TEXT_STRING,
    JSON_TEXT_ESCAPE, /* after a backslash */
    JSON_TEXT_HEX,
    JSON_TEXT_TOKEN_, /* number, true, false, null */
    JSON_TEXT_WHOLE,
    JSON_TEXT_BAD
};

struct json_text {
    struct lines *lines;
    enum json_text_state state, wanted; /* wanted: what was, before it turned out bad */
    bool is_key;                        /* the string is one */
    unsigned depth;
    uint64_t objects; /* a bit for each level: object or array */
    struct escape string;
    uint16_t high, hex; /* the first half of a surrogate pair, or 0; digits of \u so far */
    uint8_t n_hex;
    uint16_t n_token;
    char token[JSON_TEXT_TOKEN + 1];
};

void json_text_begin(struct json_text *j, struct lines *l);
/* False: it is not JSON, or too deep. */
bool json_text_add(struct json_text *j, const char *p, size_t len);
/* Ends it. False: it was not a whole and valid value, and some value was made of it. */
bool json_text_close(struct json_text *j);
