/* Checks JSON from a kernel as it comes, and passes it on without line ends, in ASCII.
 *
 * Only a number or a word is kept, until it is whole. So a value may have any size and costs no
 * memory, and numbers stay as they were written, however long. An error may show late, when the
 * first part has been passed on: then json_text_close completes it to some valid value, and the
 * caller says that this value does not count. */
#pragma once

#include "front/interpreter/lines.h"

#define JSON_TEXT_DEPTH 64
#define JSON_TEXT_TOKEN 352 /* a double of any size, written out in full */

enum json_text_state {
    JSON_TEXT_VALUE,
    JSON_TEXT_FIRST_VALUE, /* first value of an array, or `]` */
    JSON_TEXT_FIRST_KEY,   /* first key of an object, or `}` */
    JSON_TEXT_KEY,
    JSON_TEXT_COLON,
    JSON_TEXT_AFTER, /* after a value: comma, or end */
    JSON_TEXT_STRING,
    JSON_TEXT_ESCAPE, /* after a backslash */
    JSON_TEXT_HEX,
    JSON_TEXT_TOKEN_, /* number, true, false, null */
    JSON_TEXT_WHOLE,
    JSON_TEXT_BAD
};

struct json_text {
    struct lines *lines;
    enum json_text_state state, wanted; /* wanted: the state before JSON_TEXT_BAD */
    bool is_key;                        /* the string is a key */
    unsigned depth;
    uint64_t objects; /* a bit for each level: 1 for an object, 0 for an array */
    struct escape string;
    uint16_t high, hex; /* high: first half of a surrogate pair, or 0; hex: digits of \u so far */
    uint8_t n_hex;
    uint16_t n_token;
    char token[JSON_TEXT_TOKEN + 1];
};

void json_text_begin(struct json_text *j, struct lines *l);
/* False: the text is no JSON, or nested too deep. */
bool json_text_add(struct json_text *j, const char *p, size_t len);
/* Ends the value. False: it was not whole and valid, and was completed to some value. */
bool json_text_close(struct json_text *j);
