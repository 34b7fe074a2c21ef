#include <sandglass.h>

#include "lib/text/json.h"
#include "cli/local/cli.h"
#include "lib/command/options.h"
#include "lib/command/ui.h"

static void print_json(void)
{
    struct strbuf out;
    struct json j = {.out = &out};

    strbuf_init(&out, 4096);
    jw_object_begin(&j);
    jw_string(jw_key(&j, "name"), "sandglass");
    jw_string(jw_key(&j, "version"), SG_VERSION);
    jw_object_end(&j);
    puts(out.buf);
    strbuf_done(&out);
}

int cmd_version(int argc, char **argv)
{
    struct cli_plain o;
    struct sg_error e;

    if (cli_parse_plain(argc, argv, &o, &e) < 0)
        return ui_usage("version", e.message);
    if (o.help) {
        printf("Usage: sandglass version [OPTION]...\n\nPrints the version of sandglass.\n\n");
        cli_print_options(stdout, &cli_plain_syntax);
    } else if (o.json) {
        print_json();
    } else {
        puts("sandglass " SG_VERSION);
    }
    return 0;
}
