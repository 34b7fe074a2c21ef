/* sandglass-client VERB ...: the program that `sandglass` becomes for verbs that talk to a
 * server. */
#include <locale.h>
#include <signal.h>

#include "lib/command/exit_status.h"
#include "lib/command/ui.h"
#include "cli/client/client.h"

static const struct client_verb *find_verb(const char *name)
{
    for (size_t i = 0; i < client_n_verbs; i++)
        if (strcmp(client_verbs[i]->name, name) == 0)
            return client_verbs[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const struct client_verb *verb = argc > 1 ? find_verb(argv[1]) : NULL;

    if (!verb) {
        ui_error("this program is started by 'sandglass', not by hand: see 'sandglass --help'");
        return CLI_EXIT_USAGE;
    }
    setlocale(LC_CTYPE, "C.UTF-8"); /* tables count columns of UTF-8 text */
    signal(SIGPIPE, SIG_IGN);       /* writes of libcurl and to standard output fail with EPIPE */
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int status = client_main(verb, argc - 1, argv + 1);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (errno == EPIPE)
            return CLI_EXIT_SIGNAL + SIGPIPE;
        ui_error("cannot write to standard output: %s", strerror(errno));
        return status ? status : CLIENT_EXIT_REFUSED;
    }
    curl_global_cleanup();
    return status;
}
