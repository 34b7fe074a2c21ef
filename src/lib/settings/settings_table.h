/* The table of all settings, in the order of the help: a setting is a row here, and a field of
 * `struct settings`, a key, an environment variable and a flag follow from it. This file is included
 * wherever something is made of the rows, with SETTING defined as what a row becomes:
 *
 *   SETTING(kind, key, when, low, high, argument, default, help)
 *
 *   kind      what the value is           low, high            field
 *   TEXT      a text                      0, bytes with NUL    char key[]
 *   PATH      an absolute path            the same
 *   URL       http:// or https://         the same
 *   LISTEN    addresses (address.h)       the same
 *   MODULES   names of Python modules     the same
 *   SECRET    a text that is not shown    0, HIDDEN_MAX        struct hidden key
 *   YES_NO    yes or no                   0, 1                 bool key
 *   SIZE      bytes: 2G                   least, most          uint64_t key
 *   AUTO_SIZE the same, or auto           least, most          uint64_t key, SETTINGS_AUTO
 *   TIME      90s, 2h                     least, most in ms    uint64_t key_ms
 *   COUNT     a number                    least, most          uint32_t key
 *   MILLI     0.5, in thousandths         least, most          uint32_t key_milli
 *   CHOICE    one of some words           enum, "a|b|c"        enum low key
 *
 *   when      FIXED: cannot change while the server runs; LIVE: can
 *   argument  its name in the help; NULL: yes or no, and a flag without a value */
/* clang-format off */
SETTING(LISTEN, listen, FIXED, 0, SETTINGS_PATH_MAX, "ADDR[,ADDR...]", SETTINGS_LISTEN,
        "addresses to serve on")
SETTING(PATH, state, FIXED, 0, SETTINGS_PATH_MAX, "DIR", SETTINGS_STATE_DIR,
        "where keys and snapshots are kept")
SETTING(PATH, tls_cert, LIVE, 0, SETTINGS_PATH_MAX, "FILE", "",
        "certificate chain (PEM): serve HTTPS")
SETTING(PATH, tls_key, LIVE, 0, SETTINGS_PATH_MAX, "FILE", "",
        "private key of the certificate (PEM)")
/* May have a port; "": none. */
SETTING(TEXT, domain, LIVE, 0, 256, "NAME[:PORT]", "", "serve ports of sandboxes at PORT-ID.NAME")
SETTING(YES_NO, insecure, FIXED, 0, 1, NULL, "no", "allow other machines in without TLS")
/* "": the usual one. */
SETTING(TEXT, front_user, FIXED, 0, 64, "USER", "",
        "user of the process that speaks HTTP (default: sandglass if it exists)")
SETTING(PATH, front_program, FIXED, 0, SETTINGS_PATH_MAX, "FILE", "",
        "program of that process, for tests and packagers")
/* A name is that of a world of the tenant `default`. */
SETTING(TEXT, world, LIVE, 0, 132, "auto|host|NAME", "auto",
        "what 'base' and 'code-interpreter-v1' stand on")
SETTING(SIZE, sandbox_memory, LIVE, 16 * MIB, 8 * TIB, "SIZE", "2G", "memory of a sandbox")
SETTING(SIZE, sandbox_disk, LIVE, MIB, 8 * TIB, "SIZE", "1G",
        "disk of a sandbox")
/* auto: some of what is free (warden/layers/scratch_store_file.c). 0: disks are kept in memory. */
SETTING(AUTO_SIZE, worlds_disk, FIXED, 0, 64 * TIB, "SIZE|auto", "auto",
        "room on disk for the disks of all sandboxes; 0: in memory")
SETTING(YES_NO, strict, FIXED, 0, 1, "yes|no", "no",
        "no two sandboxes share files of an image, nor their pages")
SETTING(MILLI, sandbox_cpus, LIVE, 10, 1024000, "NUMBER", "2", "processors of a sandbox")
SETTING(COUNT, sandbox_pids, LIVE, 1, 32768, "NUMBER", "512", "processes and threads of a sandbox")
/* 0: the machine's, less 10 % and less 1 GiB. */
SETTING(SIZE, machine_memory, LIVE, 0, 64 * TIB, "SIZE", "0",
        "memory of all sandboxes; 0: most of the machine's")
SETTING(COUNT, pool_min, LIVE, 0, 1024, "NUMBER", "2",
        "fewest sandboxes that wait ready for a tenant")
SETTING(COUNT, pool_max, LIVE, 0, 1024, "NUMBER", "32",
        "most sandboxes that wait ready for a tenant")
/* auto, standard, science, none, or names of modules with commas between. */
SETTING(MODULES, warm_kernels, LIVE, 0, 512, "SET", "auto",
        "modules that waiting kernels have loaded, or none")
SETTING(CHOICE, kernel_fork, LIVE, settings_fork, "auto|plain", "auto|plain", "auto",
        "how kernels are made; auto: as live copies if possible")
SETTING(COUNT, tenant_sandboxes, LIVE, 1, ENGINE_MAX / 2, "NUMBER", "100",
        "sandboxes of one tenant at a time")
SETTING(COUNT, tenant_paused, LIVE, 1, 1000000, "NUMBER", "1000", "paused sandboxes of one tenant")
SETTING(SIZE, tenant_paused_memory, LIVE, PAUSED_LEAST, TIB, "SIZE", "4G",
        "memory that paused sandboxes of one tenant may hold")
SETTING(SIZE, tenant_memory, LIVE, 0, 64 * TIB, "SIZE", "0",
        "memory of all sandboxes of one tenant; 0: no limit")
SETTING(COUNT, tenant_rate, LIVE, 0, 1000000, "NUMBER", "2000",
        "control requests a second of a tenant; 0: no limit")
SETTING(COUNT, tenant_snapshots, LIVE, 0, 1000000, "NUMBER", "100",
        "snapshots that a tenant may keep")
SETTING(COUNT, tenant_templates, LIVE, 0, 100000, "NUMBER", "100",
        "templates that a tenant may have built")
SETTING(COUNT, tenant_builds, LIVE, 1, 100, "NUMBER", "4",
        "builds of templates of one tenant at a time; more wait")
SETTING(COUNT, tenant_build_layers, LIVE, 0, 100000, "NUMBER", "200",
        "results of build steps that are kept for a tenant's next builds")
SETTING(SIZE, tenant_build_size, LIVE, MIB, 1024 * TIB, "SIZE", "100G",
        "disk of a tenant's templates, images and results of steps")
SETTING(TIME, build_timeout, LIVE, 1000, DAY_MS, "TIME", "1h", "longest build of a template")
SETTING(SIZE, build_upload_max, LIVE, MIB, TIB, "SIZE", "1G",
        "files of one COPY of a build, packed")
SETTING(TEXT, build_registries, LIVE, 0, 1024, "LIST", "*",
        "registries of builds' images; *: any on the internet")
SETTING(SIZE, build_image_max, LIVE, MIB, TIB, "SIZE", "16G",
        "layers of one image that a build fetches, unpacked")
SETTING(COUNT, tenant_volumes, LIVE, 0, 1000000, "NUMBER", "100", "volumes that a tenant may have")
SETTING(SIZE, volume_size, LIVE, MIB, 8 * TIB, "SIZE", "10G", "how much a volume may hold")
SETTING(TIME, tenant_idle, LIVE, 1000, DAY_MS, "TIME", "10m",
        "how long a tenant without sandboxes keeps a pool")
SETTING(TIME, drain_timeout, LIVE, 0, DAY_MS, "TIME", "30s",
        "how long a server that ends waits for requests under way")
SETTING(TIME, max_timeout, LIVE, 1000, 3650 * DAY_MS, "TIME", "24h",
        "longest timeout that a sandbox can have")
SETTING(TEXT, default_template, LIVE, 0, 128, "NAME", "base",
        "template of a sandbox that names none")
/* settings_store() reads it. The address of PostgreSQL may have a password. */
SETTING(SECRET, store, FIXED, 0, HIDDEN_MAX, "WHERE", "sqlite",
        "contexts: sqlite, memory or postgresql://USER@HOST/DB")
/* "": other servers cannot send clients here. */
SETTING(TEXT, public_url, LIVE, 0, 256, "URL", "",
        "address of this server for clients of others on the same database")
/* "": public_url, or the address that the server has. */
SETTING(TEXT, identity_issuer, LIVE, 0, 256, "URL", "",
        "issuer of the tokens of sandboxes, where servers fetch the keys")
SETTING(TEXT, context_template, LIVE, 0, 128, "NAME", "code-interpreter-v1",
        "template of a context that names none")
SETTING(TIME, context_ttl, LIVE, 1000, 365 * DAY_MS, "TIME", "30m",
        "how long an unused context lives")
/* How long rows of ended things are kept. */
SETTING(TIME, context_keep, LIVE, 0, 36500 * DAY_MS, "TIME", "30d",
        "how long contexts that have ended are listed; 0: for ever")
SETTING(TIME, usage_keep, LIVE, 0, 36500 * DAY_MS, "TIME", "400d",
        "how long usage is kept, by the day; 0: for ever")
SETTING(COUNT, tenant_contexts, LIVE, 1, ENGINE_MAX, "NUMBER", "10",
        "sandboxes of a tenant's contexts at a time")
SETTING(COUNT, conversation_contexts, LIVE, 1, ENGINE_MAX, "NUMBER", "5",
        "sandboxes of a conversation's contexts at a time")
SETTING(TIME, execution_timeout, LIVE, 1000, DAY_MS, "TIME", "1m",
        "timeout of a tool call that names none")
SETTING(TIME, execution_timeout_max, LIVE, 1000, DAY_MS, "TIME", "10m",
        "longest timeout of a tool call")
SETTING(SIZE, code_max, LIVE, 1024, 16 * MIB, "SIZE", "100K", "longest code of a tool call")
SETTING(TIME, reap_every, LIVE, 100, DAY_MS, "TIME", "1m", "how often expired contexts are ended")
SETTING(COUNT, reap_batch, LIVE, 1, 200, "NUMBER", "50",
        "how many expired contexts are ended at once")
/* Whether a checkpoint is made before each message. */
SETTING(YES_NO, checkpoints, LIVE, 0, 1, "yes|no", "yes",
        "make a checkpoint before each message")
SETTING(COUNT, checkpoint_keep, LIVE, 1, CHECKPOINTS_MAX, "NUMBER", "20",
        "newest checkpoints of a sandbox that are all kept")
SETTING(COUNT, checkpoint_max, LIVE, 1, CHECKPOINTS_MAX, "NUMBER", "32",
        "checkpoints of a sandbox in all; older ones are thinned")
SETTING(TIME, checkpoint_age, LIVE, 1000, 365 * DAY_MS, "TIME", "24h",
        "how long a checkpoint is kept")
/* Memory of the kernels of all checkpoints of a tenant. */
SETTING(SIZE, checkpoint_memory, LIVE, 0, 8 * TIB, "SIZE", "16G",
        "memory for the kernels of a tenant's checkpoints")
/* "": those that come with the program. */
SETTING(PATH, analysis, LIVE, 0, SETTINGS_PATH_MAX, "DIR", "",
        "programs of run_analysis, in place of the built-in ones")
SETTING(TEXT, guard_user, FIXED, 0, 64, "USER", "",
        "user of the guard, through which traffic goes out (sandglass-guard)")
SETTING(PATH, guard_program, FIXED, 0, SETTINGS_PATH_MAX, "FILE", "",
        "program of that process, for tests and packagers")
SETTING(CHOICE, egress_e2b_default, LIVE, settings_egress, "open|block", "open|block", "open",
        "network of a sandbox whose create names none")
SETTING(CHOICE, egress_path, FIXED, settings_path, "auto|sk_lookup|tproxy|redirect", "HOW", "auto",
        "how traffic reaches the guard: sk_lookup, tproxy, redirect")
SETTING(TEXT, egress_dns, LIVE, 0, 256, "ADDR[,ADDR...]", "auto",
        "name servers of the guard; auto: those of this machine")
SETTING(TEXT, egress_internal, LIVE, 0, 1024, "LIST", "",
        "internal addresses and networks that may be dialled")
SETTING(TEXT, egress_deny, LIVE, 0, 1024, "LIST", "",
        "names, addresses and networks that no sandbox may reach")
/* "": the system's alone. */
SETTING(PATH, egress_roots, LIVE, 0, SETTINGS_PATH_MAX, "FILE", "",
        "more certificates (PEM) to trust where traffic is inspected")
SETTING(CHOICE, egress_fake_ip, LIVE, settings_fake, "auto|yes|no", "auto|yes|no", "auto",
        "answer DNS questions with fake addresses")
SETTING(YES_NO, egress_quic, LIVE, 0, 1, NULL, "no", "let QUIC (UDP port 443) out")
SETTING(YES_NO, egress_dot, LIVE, 0, 1, NULL, "no", "let DNS over TLS (port 853) out")
SETTING(YES_NO, egress_ech, LIVE, 0, 1, NULL, "no",
        "trust the outer name of an encrypted ClientHello")
SETTING(COUNT, egress_flows, LIVE, 1, 8192, "NUMBER", "128", "connections of a sandbox at a time")
SETTING(COUNT, egress_flow_rate, LIVE, 0, 1000000, "NUMBER", "200",
        "new connections of a sandbox in a second; 0: no limit")
SETTING(SIZE, egress_bytes, LIVE, 0, 1024 * TIB, "SIZE", "0",
        "bytes that a sandbox may send and receive in all; 0: no limit")
SETTING(CHOICE, sanitise, LIVE, settings_sanitise, "enforce|report-only|off", "MODE", "enforce",
        "output of contexts and tools: enforce, report-only or off")
SETTING(CHOICE, sanitise_streams, LIVE, settings_sanitise, "enforce|report-only|off", "MODE", "off",
        "output of sandboxes of E2B's API: enforce, report-only or off")
SETTING(YES_NO, sanitise_always, LIVE, 0, 1, NULL, "no",
        "no tenant, key or call may switch sanitising off")
SETTING(PATH, sanitise_patterns, LIVE, 0, SETTINGS_PATH_MAX, "FILE", "",
        "file of more patterns, one per line: name = expression")
SETTING(SIZE, audit_size, LIVE, 64 * 1024, TIB, "SIZE", "16M", "size of one file of the record")
SETTING(COUNT, audit_files, LIVE, 2, 100000, "NUMBER", "16",
        "files of the record that are kept for each tenant")
/* Of a hosted agent that sets none. */
SETTING(TIME, agent_timeout, LIVE, 1000, 365 * DAY_MS, "TIME", "1h",
        "timeout of a hosted agent that names none")
SETTING(SIZE, agent_replay, LIVE, 64 * 1024, 1024 * MIB, "SIZE", "16M",
        "messages of an agent that are kept for clients that reconnect")
SETTING(COUNT, tenant_agents, LIVE, 1, ENGINE_MAX, "NUMBER", "32", "hosted agents of a tenant")
/* "": no traces. */
SETTING(URL, otlp_endpoint, LIVE, 0, 256, "URL", "",
        "collector of traces (OTLP over HTTP): http://HOST:4318")
SETTING(CHOICE, otlp_protocol, LIVE, settings_otlp, "protobuf|json", "protobuf|json", "protobuf",
        "encoding of traces")
SETTING(SECRET, otlp_headers, LIVE, 0, HIDDEN_MAX, "LIST", "",
        "headers for the collector: name=value,...")
SETTING(COUNT, trace_sample, LIVE, 0, 100, "PERCENT", "100",
        "share of the traces begun here that are kept")
SETTING(YES_NO, trace_content, LIVE, 0, 1, NULL, "no", "put code and output into traces, sanitised")
SETTING(URL, langfuse_host, LIVE, 0, 256, "URL", "", "Langfuse server that gets the same traces")
SETTING(TEXT, langfuse_public_key, LIVE, 0, 128, "KEY", "", "public key for Langfuse")
SETTING(SECRET, langfuse_secret_key, LIVE, 0, HIDDEN_MAX, "KEY", "", "secret key for Langfuse")
/* "": no listener of its own. */
SETTING(LISTEN, metrics_listen, FIXED, 0, SETTINGS_PATH_MAX, "ADDR", "",
        "serve /metrics on this address, without a token")
/* "": the other listeners have no /metrics. */
SETTING(SECRET, metrics_token, LIVE, 0, HIDDEN_MAX, "TOKEN", "",
        "serve /metrics on the other addresses, with this bearer token")
/* "": usage has no price. */
SETTING(TEXT, prices, LIVE, 0, 256, "LIST", "",
        "cpu=0.05/h,memory=0.006/h,egress=0.09/G,execution=0,currency=USD")
SETTING(COUNT, event_keep, LIVE, 100, 1000000, "NUMBER", "10000",
        "events that are kept for GET /v1/events")
SETTING(URL, webhook_url, LIVE, 0, 256, "URL", "", "where events are posted to")
SETTING(SECRET, webhook_secret, LIVE, 0, HIDDEN_MAX, "SECRET", "", "key that signs posted events")
/* Kinds, with commas, and * at an end; "": all. */
SETTING(TEXT, webhook_events, LIVE, 0, 256, "LIST", "",
        "events to post, if not all: sandbox.*,context.ended")
SETTING(TEXT, webhook_targets, LIVE, 0, 1024, "LIST", "*",
        "hosts of tenants' own webhooks; *: any on the internet")
SETTING(CHOICE, log, LIVE, settings_log, "auto|text|json", "auto|text|json", "auto",
        "form of the log on standard error; auto: text on a terminal")
SETTING(CHOICE, log_level, LIVE, settings_level, "debug|info|warn|error", "LEVEL", "info",
        "debug, info, warn or error")
SETTING(COUNT, log_rate, LIVE, 0, 1000000, "NUMBER", "200", "log lines per second; 0: no limit")
SETTING(SIZE, log_size, FIXED, 0, TIB, "SIZE", "16M",
        "size of the log file that sandglass logs --server reads; 0: none")
