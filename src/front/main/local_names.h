/* Names for a server that was given none and that only this machine can reach: its domain is
 * localhost:PORT. Systems with libnss-myhostname, and browsers by themselves, take every name below
 * localhost for the loopback address, so PORT-ID.localhost:PORT leads to a sandbox's port.
 *
 * E2B's SDKs put https:// before names, and people http://. So such a listener tells TLS from plain
 * HTTP by the first byte, and has a certificate for whichever name is asked for: localhost, or one
 * below it. They are signed by an authority in the front's directory (ca.key, ca.pem), which can
 * speak for no other names, so a program that trusts it trusts nobody else's server by that. */
#pragma once

#include "front/core/front.h"

/* The port of a listener, if only this machine can reach it and it is no socket of the file system;
 * otherwise 0. */
unsigned local_port(int listener);
/* Fills in the domain of settings without one. port 0: there is no such listener. */
void local_domain(struct settings *s, unsigned port);
/* Gives the server certificates for localhost and the names below it. If that fails, it says so in
 * the log. */
bool local_certificates(struct http_server *s);
