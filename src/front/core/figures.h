/* GET /metrics: all figures of this server (front/telemetry/figures.h) as Prometheus reads them.
 *
 *   scrape --> ORDER_FIGURES --> warden   \
 *          --> ASK_FIGURES ----> guard     > the rest is known here --> one text for all who wait
 *          --> SCRAPE_MS is over          /
 *
 * Scrapes that come meanwhile wait for the same answers. What warden or guard did not tell in time
 * is left out, and sandglass_up{process=...} is 0: one that hangs is seen, and hides nothing else.
 *
 * On the server's own addresses it is for who has the token (setting metrics_token); on those of
 * metrics_listen for everybody, and nothing else is there. */
#pragma once

#include "front/core/front.h"

#define SCRAPE_MS 1000

/* On the server's own addresses. */
void metrics_answer(struct http_req *req);
/* Serves on a socket of metrics_listen, which is taken over. */
int metrics_listen(struct front *f, int fd, struct sg_error *e);
/* Once, when the store is open and before there are requests. */
void figures_start(struct front *f);

/* fn is called for each text, and sets gauges that only it knows. */
void figures_on_scrape(void (*fn)(struct front *f));
