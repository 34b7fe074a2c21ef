/* What a Dockerfile asks a server to build: the base, the steps of E2B's build API, and the start
 * command. Nothing here looks at the files that COPY names (context.h does), or at the server.
 *
 * Docker's meaning is kept where E2B's steps allow it: the build begins as root in "/", what COPY
 * brings belongs to root, and a variable of ARG is there for commands and is not kept. As with E2B's
 * SDKs, sandboxes of the template are `user` in /home/user unless the file has USER or WORKDIR. */
#pragma once

#include "cli/client/dockerfile.h"

struct recipe_vertex {
    unsigned line; /* of the Dockerfile */
    char *text;    /* "RUN make", as it stands there */
};

struct recipe_copy {
    size_t step, vertex; /* its step, whose source and hash are filled in when it is packed */
    unsigned line;
    json_t *sources; /* array of texts; NULL: it is `text` */
    char *name;      /* ... a file of this name */
    char *text;
    bool add; /* ADD: an archive would be unpacked */
};

struct recipe {
    char *from;
    char *start; /* NULL: none */
    json_t *steps;
    /* The instructions that make steps, the first of which is FROM. `of_step` says which one a step is
     * of; n_vertices: of none. */
    struct recipe_vertex *vertices;
    size_t *of_step;
    struct recipe_copy *copies;
    size_t n_vertices, n_copies, cap_vertices, cap_steps, cap_copies;
    json_t *left_out; /* texts: instructions that mean nothing here */
};

/* build_args: "NAME=VALUE" each. *ret_unused gets the first one that no ARG names, or NULL. */
int recipe_read(const char *dockerfile, const char *const *build_args, size_t n_args,
                struct recipe *ret, const char **ret_unused, struct sg_error *e);
void recipe_done(struct recipe *r);
/* Appends a word for a shell, in quotes if it needs them. */
void recipe_quote(struct strbuf *out, const char *word);
