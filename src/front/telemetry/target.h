/* Where traces go, as the settings have it: a collector of OTLP, and Langfuse. */
#pragma once

#include "lib/base/hidden.h"
#include "lib/settings/settings.h"
#include "front/telemetry/exporter.h"

#define TARGET_URL_MAX  384
#define TARGET_NAME_MAX 64

struct target_headers {
    size_t n;
    char names[EXPORTER_HEADERS][TARGET_NAME_MAX];
    struct hidden values[EXPORTER_HEADERS];
};

/* False: there is none. The headers are made anew. A header that is none is left out, and the log
 * says so. */
bool target_otlp(const struct settings *s, char url[TARGET_URL_MAX], struct target_headers *ret);
bool target_langfuse(const struct settings *s, char url[TARGET_URL_MAX],
                     struct target_headers *ret);
