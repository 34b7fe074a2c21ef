/* The program that is exec'ed from the sealed memfd, in one of five roles: holder, spawner,
 * broker, files worker, volume helper. It trusts what the warden gave it (descriptors, argv[0]) and nothing else. */
#include <string.h>

#include "lib/base/base.h"
#include "inside/stage/stage.h"
#include "inside/broker/twin.h"
#include "inside/files/files.h"
#include "inside/volume/volume.h"

int main(int argc, char **argv)
{
    if (argc == 1 && strcmp(argv[0], "sandglass-holder") == 0)
        return holder_main();
    if (argc == 1 && strcmp(argv[0], "sandglass-spawner") == 0) {
        /* `ps` shows this name for agents, which are copies of the spawner. */
        memset(argv[0], 0, strlen(argv[0]));
        memcpy(argv[0], "sandglass-agent", sizeof("sandglass-agent"));
        return spawner_main();
    }
    if (argc == 1 && strcmp(argv[0], "sandglass-broker") == 0)
        return broker_main();
    if (argc == 1 && strcmp(argv[0], FILES_ROLE) == 0)
        return files_main();
    if (argc == 1 && strcmp(argv[0], VOLUME_ROLE) == 0)
        return volume_main();
    return 2;
}
