/* The protocol between sudo and the agent. Set-uid is off in a sandbox, so our sudo asks the agent
 * to run the command.
 *
 * A SOCK_SEQPACKET socket; each message is a wire form (lib/channel/wire.h):
 *
 *   sudo                                        agent
 *   request with its three standard descriptors -->   starts the command
 *   signal u32 (any number of times)            -->   to the command's process group
 *                                               <--   one result, then the end
 *
 * request: magic u32, flags u32, user str, cwd str, program str, n_args u32, args str...,
 *          n_env u32, "K=V" str...
 * result:  what u32 (enum sudo_result), code u32, message str.
 * If sudo goes away first, the command gets SIGHUP, and SIGKILL SUDO_HANGUP_MS later. */
#pragma once

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* An abstract socket name, which costs no file. The name belongs to the sandbox's network
 * namespace, where the agent takes it before any other process runs. */
#define SUDO_NAME        "sandglass-sudo"
#define SUDO_MAGIC       0x73675355u
#define SUDO_MESSAGE_MAX (128u * 1024)
#define SUDO_HANGUP_MS   2000
#define SUDO_FDS         3

/* request flags */
#define SUDO_TTY 1u /* the first descriptor is a terminal that becomes the command's own */

static inline socklen_t sudo_address(struct sockaddr_un *ret)
{
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret->sun_path + 1, SUDO_NAME, sizeof(SUDO_NAME) - 1);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(SUDO_NAME));
}

enum sudo_result {
    SUDO_EXITED,  /* code: its exit status */
    SUDO_KILLED,  /* code: the signal */
    SUDO_REFUSED, /* the command never ran; the message says why */
    SUDO_RESULT_MAX_
};
