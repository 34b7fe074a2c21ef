/* The contents of volumes over HTTP: what E2B's class Volume asks for, with the volume's token. */
#pragma once

#include "lib/http/http.h"

#define VOLUME_CONTENT "/volumecontent/"

void volume_content_request(struct http_req *req);
