/* GET /metrics: all figures of this server (front/telemetry/figures.h) in the form that Prometheus
 * reads.
 *
 *   scrape --> ORDER_FIGURES --> warden  \
 *          --> ASK_FIGURES ----> guard    > with the front's own figures: one text for all scrapes
 *          --> SCRAPE_MS is over         /
 *
 * Scrapes that come meanwhile wait for the same answers. If the warden or the guard does not answer
 * in time, its figures are left out and sandglass_up{process=...} is 0: a process that hangs is
 * seen, and hides no other figures.
 *
 * On the server's own addresses a scrape needs the token (setting metrics_token). On the addresses
 * of metrics_listen nobody needs one, and nothing but /metrics is served there. */
#pragma once

#include "front/core/front.h"

#define SCRAPE_MS 1000

/* Answers a scrape on the server's own addresses. */
void metrics_answer(struct http_req *req);
/* Serves scrapes on a socket of metrics_listen, and takes the socket over. */
int metrics_listen(struct front *f, int fd, struct sg_error *e);
/* Called once, after the store is open and before the first request. */
void figures_start(struct front *f);

/* Has fn called before each text is written, to set gauges that only its module knows. */
void figures_on_scrape(void (*fn)(struct front *f));
