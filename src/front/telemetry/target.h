/* The targets of traces, as the settings name them: a collector of OTLP, and Langfuse. */
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

/* Reads a target from the settings. False: the settings name none. Makes the headers anew; an entry
 * that is no header is left out, and the log says so. */
bool target_otlp(const struct settings *s, char url[TARGET_URL_MAX], struct target_headers *ret);
bool target_langfuse(const struct settings *s, char url[TARGET_URL_MAX],
                     struct target_headers *ret);
