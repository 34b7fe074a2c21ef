/* Reads a Dockerfile: its text becomes instructions, and words of them get their variables.
 *
 * What is here is the form. What the instructions mean is in recipe.h. Errors name the line. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/text/strbuf.h"

#define DOCKERFILE_MAX      (1024u * 1024)
#define DOCKERFILE_WORD_MAX (256u * 1024)

/* Text that stands between "<<NAME" and a line NAME. */
struct docker_heredoc {
    char *name, *text;
    bool literal; /* the name was quoted: no variables in it */
};

#define DOCKER_HEREDOCS_MAX 8

struct docker_line {
    unsigned number;  /* of its first line, from 1 on */
    char keyword[16]; /* in capitals */
    char *rest;       /* its lines as one, without comments */
    struct docker_heredoc heredocs[DOCKER_HEREDOCS_MAX];
    size_t n_heredocs;
};

struct dockerfile {
    struct docker_line *lines;
    size_t n, cap;
};

int dockerfile_read(const char *text, struct dockerfile *ret, struct sg_error *e);
void dockerfile_done(struct dockerfile *f);

/* An error about a line: "line 7: ...". */
int dockerfile_wrong(struct sg_error *e, const struct docker_line *l, const char *fmt, ...)
    PRINTF(3, 4);

/* Cuts at blanks outside of quotes. The words keep their quotes. Array of texts. */
int dockerfile_words(const struct docker_line *l, const char *text, json_t **ret,
                     struct sg_error *e);
/* ["a", "b"]: the exec form. NULL if the text is none. */
json_t *dockerfile_exec_form(const char *text);

/* The variables that a Dockerfile has set so far: objects of texts. ENV wins. */
struct docker_vars {
    json_t *args, *envs;
};
/* Takes quotes away and replaces $NAME, ${NAME}, ${NAME:-WORD}, ${NAME:+WORD}. An unknown one is
 * empty.
 * for_env: the text goes on to a server, as a value of ENV. The server replaces variables that it
 * knows, those of ENV and of the image, so these stay; and a $ that is none is written as \$. */
int dockerfile_expand(const struct docker_line *l, const struct docker_vars *v, const char *text,
                      bool for_env, struct strbuf *out, struct sg_error *e);
/* The same in the text of a heredoc, where quotes are text. */
int dockerfile_expand_text(const struct docker_line *l, const struct docker_vars *v,
                           const char *text, struct strbuf *out, struct sg_error *e);
