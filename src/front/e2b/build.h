/* Builds of templates over HTTP (front/builds/build.h). */
#pragma once

#include "front/e2b/request.h"
#include "front/store/templates.h"

#define BUILDS_KEPT 100 /* entries of a template's builds */

/* Routes. */

void build_create(struct http_req *req);
void build_files(struct http_req *req);
void build_start(struct http_req *req);
void build_status(struct http_req *req);
void build_logs(struct http_req *req);
void build_cancel(struct http_req *req);
