/* A build of a template on a server, from a client's side: what `template build` and `template import`
 * have in common.
 *
 *   making_begin: POST template --> making_upload: what the server has not --> making_start: POST build
 *       --> making_wait: status, again and again, until it is ready or has failed */
#pragma once

#include <limits.h>

#include "cli/client/build_view.h"
#include "cli/client/template.h"

#define MAKING_NAME_MAX 64

struct making {
    struct client *client;
    const struct template_options *o;
    char file[PATH_MAX]; /* the Dockerfile, for messages */
    char name[MAKING_NAME_MAX + 1];
    struct recipe recipe;
    struct build_view view;
    json_t *made; /* the server's answer: ids, names, tags */
    struct sg_error *e;
};

int making_begin(struct making *m);
/* Where an archive goes. The answer has "present" if the server has one under that hash. */
int making_ask_upload(struct making *m, const char *hash, json_t **ret);
/* answer: of making_ask_upload. size: -1 if nobody knows. */
int making_upload(struct making *m, const json_t *answer, int fd, int64_t size);
int making_start(struct making *m);
int making_wait(struct making *m);
/* Prints the template's name, or the server's answer. */
int making_show(struct making *m);
void making_done(struct making *m);
