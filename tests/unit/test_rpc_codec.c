/* Messages: both forms of one give the same object, and what comes from outside is checked. */
#include "front/envd/messages.h"
#include "lib/text/base64.h"
#include "lib/rpc/codec.h"
#include "tap.h"

/* A table with everything that tables can say. */
static const struct rpc_value colours[] = {{"RED", 0}, {"GREEN", 1}, {"BLUE", -7}};
static const struct rpc_enum colour_values = {colours, ARRAY_SIZE(colours)};
static const struct rpc_message all;
static const struct rpc_field all_fields[] = {
    {.name = "text", .number = 1, .type = RPC_STRING},
    {.name = "rawBytes", .number = 2, .type = RPC_BYTES},
    {.name = "flag", .number = 3, .type = RPC_BOOL},
    {.name = "small", .number = 4, .type = RPC_INT32},
    {.name = "natural", .number = 5, .type = RPC_UINT32},
    {.name = "zigZag", .number = 6, .type = RPC_SINT32},
    {.name = "large", .number = 7, .type = RPC_INT64},
    {.name = "colour", .number = 8, .type = RPC_ENUM, .values = &colour_values},
    {.name = "inner", .number = 9, .type = RPC_MESSAGE, .message = &all},
    {.name = "pairs", .number = 10, .type = RPC_MAP},
    {.name = "maybe", .number = 11, .type = RPC_STRING, .label = RPC_OPTIONAL},
    {.name = "maybeNumber", .number = 12, .type = RPC_UINT32, .label = RPC_OPTIONAL},
    {.name = "one", .number = 13, .type = RPC_STRING, .oneof = 1},
    {.name = "other", .number = 14, .type = RPC_UINT32, .oneof = 1},
    {.name = "manyTexts", .number = 15, .type = RPC_STRING, .label = RPC_REPEATED},
    {.name = "manyNumbers", .number = 16, .type = RPC_SINT32, .label = RPC_REPEATED},
    {.name = "many", .number = 17, .type = RPC_MESSAGE, .label = RPC_REPEATED, .message = &all},
    {.name = "when", .number = 2000, .type = RPC_MESSAGE, .message = &rpc_timestamp},
};
static const struct rpc_message all = RPC_TABLE("All", all_fields);

static struct sg_error error;

static json_t *decode(const struct rpc_message *m, enum rpc_codec codec, const void *p, size_t len)
{
    json_t *value = NULL;

    error = (struct sg_error){0};
    int r = rpc_decode(m, codec, p, len, &value, &error);
    EXPECT((r == 0) == (value != NULL));
    return value;
}

static json_t *from_json(const struct rpc_message *m, const char *text)
{
    return decode(m, RPC_JSON, text, strlen(text));
}

/* JSON in, JSON out; on the way through protobuf if `codec` says so. */
static void expect_text(const struct rpc_message *m, const char *in, const char *want)
{
    json_t *value = from_json(m, in), *again;

    EXPECT(value != NULL);
    if (!value) {
        printf("# %s\n", error.message);
        return;
    }
    for (int i = 0; i < 2; i++) {
        AUTO(strbuf_done) struct strbuf text = {0}, binary = {0};
        strbuf_init(&text, 1u << 20);
        strbuf_init(&binary, 1u << 20);
        rpc_encode(m, RPC_JSON, value, &text);
        EXPECT_STR(text.buf, want);
        rpc_encode(m, RPC_PROTO, value, &binary);
        again = decode(m, RPC_PROTO, binary.buf, binary.len);
        EXPECT(json_equal(again, value));
        json_decref(value);
        value = again;
    }
    json_decref(value);
}

static void expect_refused(const char *text, const char *part)
{
    json_t *value = from_json(&all, text);

    EXPECT(value == NULL);
    if (value)
        printf("# taken: %s\n", text);
    if (!strstr(error.message, part))
        printf("# '%s' lacks '%s'\n", error.message, part);
    EXPECT(strstr(error.message, part) != NULL);
    EXPECT(error.kind == SG_ERR_INVALID && error.code == -EINVAL);
    json_decref(value);
}

TEST(json_takes_every_spelling_and_writes_one)
{
    static const struct {
        const char *in, *want;
    } cases[] = {
        {"{}", "{}"},
        {"", "{}"},
        {" { \"text\" : \"caf\\u00e9 \\\"q\\\"\" } ", "{\"text\":\"caf\xc3\xa9 \\\"q\\\"\"}"},
        {"{\"text\":\"\"}", "{}"},
        {"{\"text\":null,\"inner\":null,\"manyTexts\":null,\"pairs\":null}", "{}"},
        {"{\"unknown\":[{\"a\":{}}],\"text\":\"x\"}", "{\"text\":\"x\"}"},
        {"{\"rawBytes\":\"aGk=\"}", "{\"rawBytes\":\"aGk=\"}"},
        {"{\"raw_bytes\":\"aGk\"}", "{\"rawBytes\":\"aGk=\"}"},
        {"{\"rawBytes\":\"_-8\"}", "{\"rawBytes\":\"/+8=\"}"},
        {"{\"flag\":true}", "{\"flag\":true}"},
        {"{\"flag\":false}", "{}"},
        {"{\"small\":-1,\"natural\":4294967295,\"zigZag\":-2147483648}",
         "{\"small\":-1,\"natural\":4294967295,\"zigZag\":-2147483648}"},
        {"{\"small\":\"-12\",\"natural\":1e2,\"zig_zag\":3.0}",
         "{\"small\":-12,\"natural\":100,\"zigZag\":3}"},
        {"{\"large\":9223372036854775807}", "{\"large\":\"9223372036854775807\"}"},
        {"{\"large\":\"-9223372036854775808\"}", "{\"large\":\"-9223372036854775808\"}"},
        {"{\"colour\":\"GREEN\"}", "{\"colour\":\"GREEN\"}"},
        {"{\"colour\":-7}", "{\"colour\":\"BLUE\"}"},
        {"{\"colour\":99}", "{\"colour\":99}"},
        {"{\"colour\":\"RED\"}", "{}"},
        {"{\"inner\":{}}", "{\"inner\":{}}"},
        {"{\"inner\":{\"inner\":{\"flag\":true}}}", "{\"inner\":{\"inner\":{\"flag\":true}}}"},
        {"{\"pairs\":{\"b\":\"2\",\"a\":\"\"}}", "{\"pairs\":{\"b\":\"2\",\"a\":\"\"}}"},
        {"{\"pairs\":{}}", "{}"},
        {"{\"maybe\":\"\",\"maybeNumber\":0}", "{\"maybe\":\"\",\"maybeNumber\":0}"},
        {"{\"one\":\"\"}", "{\"one\":\"\"}"},
        {"{\"other\":0}", "{\"other\":0}"},
        {"{\"manyTexts\":[\"a\",\"\",\"b\"]}", "{\"manyTexts\":[\"a\",\"\",\"b\"]}"},
        {"{\"manyTexts\":[]}", "{}"},
        {"{\"manyNumbers\":[0,-1,1]}", "{\"manyNumbers\":[0,-1,1]}"},
        {"{\"many\":[{},{\"text\":\"x\"}]}", "{\"many\":[{},{\"text\":\"x\"}]}"},
        {"{\"when\":\"2024-05-06T07:08:09Z\"}", "{\"when\":\"2024-05-06T07:08:09Z\"}"},
        {"{\"when\":\"2024-02-29T23:59:59.120+01:00\"}", "{\"when\":\"2024-02-29T22:59:59.120Z\"}"},
        {"{\"when\":\"1969-12-31T23:59:59.000000001Z\"}",
         "{\"when\":\"1969-12-31T23:59:59.000000001Z\"}"},
        {"{\"when\":\"1970-01-01T00:00:00Z\"}", "{\"when\":\"1970-01-01T00:00:00Z\"}"},
        {"{\"when\":\"9999-12-31T23:59:59.5Z\"}", "{\"when\":\"9999-12-31T23:59:59.500Z\"}"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        expect_text(&all, cases[i].in, cases[i].want);
}

TEST(json_of_the_wrong_type_names_the_field)
{
    expect_refused("{\"text\":1}", "field 'text'");
    expect_refused("{\"inner\":{\"text\":[]}}", "field 'inner.text'");
    expect_refused("{\"many\":[{},{\"flag\":\"true\"}]}", "field 'many.flag'");
    expect_refused("{\"rawBytes\":7}", "field 'rawBytes'");
    expect_refused("{\"raw_bytes\":\"a\"}", "base64");
    expect_refused("{\"rawBytes\":\"====\"}", "base64");
    expect_refused("{\"rawBytes\":\"aGk=aGk=\"}", "base64");
    expect_refused("{\"rawBytes\":\"aGk \"}", "base64");
    expect_refused("{\"flag\":0}", "true or false");
    expect_refused("{\"small\":2147483648}", "field 'small'");
    expect_refused("{\"small\":1.5}", "field 'small'");
    expect_refused("{\"small\":\"\"}", "field 'small'");
    expect_refused("{\"small\":\" 1\"}", "field 'small'");
    expect_refused("{\"small\":\"1x\"}", "field 'small'");
    expect_refused("{\"small\":true}", "field 'small'");
    expect_refused("{\"natural\":-1}", "field 'natural'");
    expect_refused("{\"natural\":1e300}", "field 'natural'");
    expect_refused("{\"large\":\"9223372036854775808\"}", "field 'large'");
    expect_refused("{\"colour\":\"MAUVE\"}", "'MAUVE'");
    expect_refused("{\"colour\":[]}", "field 'colour'");
    expect_refused("{\"inner\":[]}", "field 'inner'");
    expect_refused("{\"inner\":\"x\"}", "must be an object");
    expect_refused("{\"pairs\":[]}", "field 'pairs'");
    expect_refused("{\"pairs\":{\"a\":1}}", "field 'pairs'");
    expect_refused("{\"pairs\":{\"a\":null}}", "field 'pairs'");
    expect_refused("{\"manyTexts\":\"a\"}", "must be an array");
    expect_refused("{\"manyTexts\":[null]}", "field 'manyTexts'");
    expect_refused("{\"one\":\"a\",\"other\":1}", "'one'");
    expect_refused("{\"when\":7}", "field 'when'");
    expect_refused("{\"when\":\"yesterday\"}", "field 'when'");
    expect_refused("{\"when\":\"2023-02-29T00:00:00Z\"}", "field 'when'");
    expect_refused("{\"when\":\"2023-02-28T24:00:00Z\"}", "field 'when'");
    expect_refused("{\"when\":\"2023-02-28T00:00:00\"}", "field 'when'");
    expect_refused("{\"when\":\"0001-01-01T00:00:00+01:00\"}", "field 'when'");
    expect_refused("{\"rawBytes\":\"\",\"raw_bytes\":\"\"}", "twice");
}

TEST(what_is_no_json_is_refused)
{
    static const char *const texts[] = {
        "{",
        "[]",
        "null",
        "1",
        "\"x\"",
        "{}{}",
        "{\"text\":}",
        "{a:1}",
        "{,}",
        "{} x",
        "\xff\xfe",
        "{\"text\":\"\xc3\x28\"}",
        "{\"text\":\"\\u0000\"}",
        "{\"text\":\"\xed\xa0\x80\"}",
        "{\"text\":\"a\",\"text\":\"b\"}",
        "{\"x\":1e999}",
        "{\"small\":99999999999999999999}",
        "\"",
        "{\"a\":\"\\",
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        expect_refused(texts[i], "All ");
    EXPECT(decode(&all, RPC_JSON, "{\"text\":\"a\0b\"}", 14) == NULL);
}

TEST(deep_and_crowded_json_is_refused_before_it_is_built)
{
    AUTO(strbuf_done) struct strbuf deep = {0}, wide = {0}, fine = {0};

    strbuf_init(&deep, 1u << 20);
    for (int i = 0; i < 100000; i++)
        strbuf_addch(&deep, '[');
    EXPECT(decode(&all, RPC_JSON, deep.buf, deep.len) == NULL);
    EXPECT(strstr(error.message, "deep") != NULL);

    strbuf_init(&wide, 1u << 20);
    strbuf_addstr(&wide, "{\"x\":[");
    for (int i = 0; i < 100000; i++)
        strbuf_addstr(&wide, "0,");
    strbuf_addstr(&wide, "0]}");
    EXPECT(decode(&all, RPC_JSON, wide.buf, wide.len) == NULL);
    EXPECT(strstr(error.message, "values") != NULL);

    /* what stands in a string does not count */
    strbuf_init(&fine, 1u << 20);
    strbuf_addstr(&fine, "{\"text\":\"\\\"");
    for (int i = 0; i < 100000; i++)
        strbuf_addstr(&fine, "[,");
    strbuf_addstr(&fine, "\"}");
    json_t *value = decode(&all, RPC_JSON, fine.buf, fine.len);
    EXPECT(value != NULL && strlen(jr_text(value, "text")) == 200001);
    json_decref(value);

    /* the table's own depth */
    strbuf_reset(&deep);
    for (int i = 0; i < RPC_DEPTH_MAX + 1; i++)
        strbuf_addstr(&deep, "{\"inner\":");
    strbuf_addstr(&deep, "{}");
    for (int i = 0; i < RPC_DEPTH_MAX + 1; i++)
        strbuf_addch(&deep, '}');
    EXPECT(decode(&all, RPC_JSON, deep.buf, deep.len) == NULL);
}

/* ---- protobuf -------------------------------------------------------------------------------- */

#define BINARY(s) (s), sizeof(s) - 1

static void expect_binary(const char *p, size_t len, const char *want)
{
    AUTO(strbuf_done) struct strbuf text = {0};
    json_t *value = decode(&all, RPC_PROTO, p, len);

    strbuf_init(&text, 4096);
    if (value)
        rpc_encode(&all, RPC_JSON, value, &text);
    EXPECT_STR(value ? text.buf : error.message, want);
    json_decref(value);
}

TEST(protobuf_is_read_as_protobuf_says)
{
    expect_binary(BINARY(""), "{}");
    expect_binary(BINARY("\x0a\x02hi"), "{\"text\":\"hi\"}");
    expect_binary(BINARY("\x0a\x02hi\x0a\x03you"), "{\"text\":\"you\"}");
    expect_binary(BINARY("\x0a\x02hi\x0a\x00"), "{}");
    expect_binary(BINARY("\x18\x01"), "{\"flag\":true}");
    expect_binary(BINARY("\x18\x80\x02"), "{\"flag\":true}");
    expect_binary(BINARY("\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "{\"small\":-1}");
    expect_binary(BINARY("\x20\x81\x80\x80\x80\x10"), "{\"small\":1}"); /* the high bits go */
    expect_binary(BINARY("\x28\xff\xff\xff\xff\x0f"), "{\"natural\":4294967295}");
    expect_binary(BINARY("\x30\x01"), "{\"zigZag\":-1}");
    expect_binary(BINARY("\x30\xff\xff\xff\xff\x0f"), "{\"zigZag\":-2147483648}");
    expect_binary(BINARY("\x38\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
                  "{\"large\":\"9223372036854775807\"}");
    expect_binary(BINARY("\x40\xf9\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "{\"colour\":\"BLUE\"}");
    /* messages are merged */
    expect_binary(BINARY("\x4a\x04\x0a\x02hi\x4a\x02\x18\x01"),
                  "{\"inner\":{\"text\":\"hi\",\"flag\":true}}");
    /* maps: parts in any order, and missing ones */
    expect_binary(BINARY("\x52\x06\x12\x01v\x0a\x01k\x52\x00\x52\x03\x0a\x01x"),
                  "{\"pairs\":{\"k\":\"v\",\"\":\"\",\"x\":\"\"}}");
    expect_binary(BINARY("\x52\x06\x0a\x01k\x12\x01v\x52\x06\x0a\x01k\x12\x01w"),
                  "{\"pairs\":{\"k\":\"w\"}}");
    /* presence, and oneof: the last one counts */
    expect_binary(BINARY("\x5a\x00\x60\x00"), "{\"maybe\":\"\",\"maybeNumber\":0}");
    expect_binary(BINARY("\x6a\x01x\x70\x05"), "{\"other\":5}");
    /* repeated numbers, packed and not */
    expect_binary(BINARY("\x82\x01\x02\x01\x02\x80\x01\x03\x82\x01\x00"),
                  "{\"manyNumbers\":[-1,1,-2]}");
    /* unknown fields of every kind, and known ones of another */
    expect_binary(
        BINARY("\x98\x06\x05\x9d\x06....\x99\x06........\x9a\x06\x03xyz\x08\x07\x1a\x01z"), "{}");
    expect_binary(BINARY("\x82\x7d\x06\x08\xd9\x83\xe2\xb1\x06"),
                  "{\"when\":\"2024-05-06T07:08:09Z\"}");
}

TEST(broken_protobuf_is_refused)
{
    static const struct {
        const char *p;
        size_t len;
    } bad[] = {
        {BINARY("\x0a")},       /* no length */
        {BINARY("\x0a\x05hi")}, /* too short */
        {BINARY("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01hi")},
        {BINARY("\x18")},
        {BINARY("\x18\x80")},
        {BINARY("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02")}, /* over 64 bits */
        {BINARY("\x18\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00")},
        {BINARY("\x00\x00")}, /* field 0 */
        {BINARY("\x0b\x0c")}, /* groups */
        {BINARY("\x0c")},
        {BINARY("\x0e\x00")}, /* no such wire type */
        {BINARY("\x0f\x00")},
        {BINARY("\xf8\xff\xff\xff\x7f\x00")}, /* number too large */
        {BINARY("\x0a\x02\xc3\x28")},         /* no UTF-8 */
        {BINARY("\x0a\x03"
                "a\0b")}, /* NUL */
        {BINARY("\x52\x04\x0a\x02\xff\xff")},
        {BINARY("\x52\x02\x0a\x05")},
        {BINARY("\x4a\x02\x0a\x05")}, /* inside */
        {BINARY("\x82\x01\x01\x80")},
        {BINARY("\x9d\x06...")},
        {BINARY("\x99\x06.......")},
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        json_t *value = decode(&all, RPC_PROTO, bad[i].p, bad[i].len);
        if (value)
            printf("# case %zu was taken\n", i);
        EXPECT(value == NULL && error.kind == SG_ERR_INVALID);
        json_decref(value);
    }
}

TEST(deep_and_crowded_protobuf_is_refused)
{
    AUTO(strbuf_done) struct strbuf in = {0}, out = {0}, many = {0};

    strbuf_init(&in, 4096);
    strbuf_init(&out, 4096);
    for (int i = 0; i <= RPC_DEPTH_MAX; i++) {
        strbuf_reset(&out);
        strbuf_addch(&out, '\x4a');
        strbuf_addch(&out, (char)in.len);
        strbuf_add(&out, in.buf, in.len);
        strbuf_reset(&in);
        strbuf_add(&in, out.buf, out.len);
        json_t *value = decode(&all, RPC_PROTO, in.buf, in.len);
        EXPECT((value != NULL) == (i < RPC_DEPTH_MAX));
        json_decref(value);
    }

    strbuf_init(&many, 1u << 20);
    for (int i = 0; i <= RPC_VALUES_MAX; i++)
        strbuf_add(&many, "\x8a\x01\x00", 3);
    EXPECT(decode(&all, RPC_PROTO, many.buf, many.len) == NULL);
    EXPECT(strstr(error.message, "values") != NULL);
}

/* ---- the messages that are really sent ------------------------------------------------------- */

TEST(requests_as_the_sdks_send_them)
{
    expect_text(&start_request,
                "{\"process\":{\"cmd\":\"/bin/bash\",\"args\":[\"-l\",\"-c\",\"echo hi\"],"
                "\"envs\":{\"A\":\"1\"},\"cwd\":\"/tmp\"},\"stdin\":false}",
                "{\"process\":{\"cmd\":\"/bin/bash\",\"args\":[\"-l\",\"-c\",\"echo hi\"],"
                "\"envs\":{\"A\":\"1\"},\"cwd\":\"/tmp\"},\"stdin\":false}");
    expect_text(&start_request,
                "{\n  \"process\": {\n    \"cmd\": \"/bin/bash\"\n  },\n  \"pty\": {\"size\": "
                "{\"cols\": 80, \"rows\": 24}},\n  \"tag\": \"t\"\n}",
                "{\"process\":{\"cmd\":\"/bin/bash\"},\"pty\":{\"size\":{\"cols\":80,\"rows\":24}},"
                "\"tag\":\"t\"}");
    expect_text(&send_signal_request, "{\"process\":{\"pid\":7},\"signal\":\"SIGNAL_SIGKILL\"}",
                "{\"process\":{\"pid\":7},\"signal\":\"SIGNAL_SIGKILL\"}");
    expect_text(&watch_request, "{\"path\":\"/x\",\"recursive\":true,\"include_entry\":true}",
                "{\"path\":\"/x\",\"recursive\":true,\"includeEntry\":true}");
    expect_text(&stream_input_request, "{\"data\":{\"input\":{\"pty\":\"bHM=\"}}}",
                "{\"data\":{\"input\":{\"pty\":\"bHM=\"}}}");
}

TEST(answers_as_the_sdks_expect_them)
{
    expect_text(&stream_response, "{\"event\":{\"start\":{\"pid\":7}}}",
                "{\"event\":{\"start\":{\"pid\":7}}}");
    expect_text(&stream_response, "{\"event\":{\"data\":{\"stdout\":\"aGk=\"}}}",
                "{\"event\":{\"data\":{\"stdout\":\"aGk=\"}}}");
    expect_text(
        &stream_response,
        "{\"event\":{\"end\":{\"exitCode\":0,\"exited\":true,\"status\":\"exit status 0\"}}}",
        "{\"event\":{\"end\":{\"exited\":true,\"status\":\"exit status 0\"}}}");
    expect_text(
        &stream_response,
        "{\"event\":{\"end\":{\"exitCode\":-1,\"exited\":false,\"status\":\"signal: killed\","
        "\"error\":\"signal: killed\"}}}",
        "{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: killed\","
        "\"error\":\"signal: killed\"}}}");
    expect_text(&stream_response, "{\"event\":{\"keepalive\":{}}}",
                "{\"event\":{\"keepalive\":{}}}");
    expect_text(&entry_response,
                "{\"entry\":{\"name\":\"f\",\"type\":1,\"path\":\"/f\",\"size\":5,\"mode\":420,"
                "\"modifiedTime\":\"2024-05-06T07:08:09.5Z\",\"metadata\":{\"k\":\"v\"}}}",
                "{\"entry\":{\"name\":\"f\",\"type\":\"FILE_TYPE_FILE\",\"path\":\"/f\",\"size\":"
                "\"5\",\"mode\":420,\"modifiedTime\":\"2024-05-06T07:08:09.500Z\",\"metadata\":{"
                "\"k\":\"v\"}}}");
}

/* JSON and protobuf of the same messages, as a protobuf library writes them. */
TEST(both_forms_are_those_of_others)
{
    static const struct {
        const struct rpc_message *m;
        const char *text, *hex;
    } cases[] = {
        {&start_request,
         "{\"process\":{\"cmd\":\"/bin/bash\",\"args\":[\"-l\"],\"envs\":{\"A\":\"1\"},\"cwd\":\"/"
         "\"},\"stdin\":false}",
         "0a1a0a092f62696e2f6261736812022d6c1a060a014112013122012f2000"},
        {&start_request,
         "{\"process\":{\"cmd\":\"x\",\"args\":[\"\xc3\xa9"
         "\",\"\"]},\"pty\":{\"size\":{\"cols\":80,\"rows\":24}},\"tag\":\"\"}",
         "0a090a01781202c3a9120012060a04085010181a00"},
        {&stream_response,
         "{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: killed\",\"error\":\"signal: "
         "killed\"}}}",
         "0a241a2208011a0e7369676e616c3a206b696c6c6564220e7369676e616c3a206b696c6c6564"},
        {&stream_response,
         "{\"event\":{\"end\":{\"exitCode\":3,\"exited\":true,\"status\":\"exit status "
         "3\",\"error\":\"exit status 3\"}}}",
         "0a241a22080610011a0d65786974207374617475732033220d65786974207374617475732033"},
        {&stream_response, "{\"event\":{\"data\":{\"stdout\":\"aGkA/w==\"}}}",
         "0a0812060a04686900ff"},
        {&stream_response, "{\"event\":{\"keepalive\":{}}}", "0a022200"},
        {&send_signal_request, "{\"process\":{\"tag\":\"\"},\"signal\":\"SIGNAL_SIGKILL\"}",
         "0a0212001009"},
        {&send_input_request, "{\"process\":{\"pid\":0},\"input\":{\"pty\":\"bHM=\"}}",
         "0a020800120412026c73"},
        {&stream_input_request, "{\"data\":{\"input\":{\"stdin\":\"bHM=\"}}}", "120612040a026c73"},
        {&stream_input_request, "{\"start\":{\"process\":{\"pid\":300}}}", "0a050a0308ac02"},
        {&update_request, "{\"process\":{\"pid\":7},\"pty\":{\"size\":{\"cols\":1,\"rows\":2}}}",
         "0a02080712060a0408011002"},
        {&list_response,
         "{\"processes\":[{\"config\":{\"cmd\":\"a\"},\"pid\":1,\"tag\":\"t\"},{\"pid\":2}]}",
         "0a0a0a030a016110011a01740a021002"},
        {&entry_response,
         "{\"entry\":{\"name\":\"f\",\"type\":\"FILE_TYPE_FILE\",\"path\":\"/"
         "f\",\"size\":\"5000000000\",\"mode\":420,\"permissions\":\"-rw-r--r--\",\"owner\":"
         "\"user\",\"group\":\"user\",\"modifiedTime\":\"2024-05-06T07:08:09.500Z\","
         "\"symlinkTarget\":\"/x\",\"metadata\":{\"k\":\"v\"}}}",
         "0a440a016610011a022f662080e497d01228a403320a2d72772d722d2d722d2d3a04757365724204757365724"
         "a0c08d983e2b1061080cab5ee0152022f785a060a016b120176"},
        {&list_dir_request, "{\"path\":\"/x\",\"depth\":3}", "0a022f781003"},
        {&move_request, "{\"source\":\"a\",\"destination\":\"b\"}", "0a0161120162"},
        {&watch_request,
         "{\"path\":\"/\",\"recursive\":true,\"includeEntry\":true,\"allowNetworkMounts\":true}",
         "0a012f100118012001"},
        {&watch_response,
         "{\"filesystem\":{\"name\":\"n\",\"type\":\"EVENT_TYPE_CHMOD\",\"entry\":{\"name\":\"n\","
         "\"modifiedTime\":\"1969-12-31T23:59:59.000000001Z\"}}}",
         "12190a016e10051a120a016e4a0d08ffffffffffffffffff011001"},
        {&watcher_id_message, "{\"watcherId\":\"w1\"}", "0a027731"},
        {&watcher_events, "{\"events\":[{\"name\":\"a\",\"type\":\"EVENT_TYPE_CREATE\"}]}",
         "0a050a01611001"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        AUTO(strbuf_done) struct strbuf out = {0}, hex = {0};
        json_t *value = from_json(cases[i].m, cases[i].text);

        strbuf_init(&out, 4096);
        strbuf_init(&hex, 8192);
        rpc_encode(cases[i].m, RPC_PROTO, value, &out);
        for (size_t k = 0; k < out.len; k++)
            strbuf_addf(&hex, "%02x", (unsigned char)out.buf[k]);
        EXPECT_STR(hex.buf, cases[i].hex);
        json_decref(value);
        expect_text(cases[i].m, cases[i].text, cases[i].text);
    }
}

TEST(a_list_is_the_same_element_by_element)
{
    for (int codec = RPC_JSON; codec <= RPC_PROTO; codec++) {
        for (int n = 0; n < 3; n++) {
            AUTO(strbuf_done) struct strbuf whole = {0}, pieces = {0};
            json_t *entries = json_array();
            struct rpc_list list;

            strbuf_init(&whole, 4096);
            strbuf_init(&pieces, 4096);
            rpc_list_begin(&list, &list_dir_response, (enum rpc_codec)codec, &pieces);
            for (int i = 0; i < n; i++) {
                json_t *entry = json_pack("{s:s, s:i}", "name", "a", "mode", i);
                rpc_list_add(&list, entry);
                json_array_append_new(entries, entry);
            }
            rpc_list_end(&list);
            json_t *message = json_object();
            if (n > 0)
                json_object_set(message, "entries", entries);
            rpc_encode(&list_dir_response, (enum rpc_codec)codec, message, &whole);
            EXPECT(whole.len == pieces.len && memcmp(whole.buf, pieces.buf, whole.len) == 0);
            json_decref(message);
            json_decref(entries);
        }
    }
}

TEST(an_answer_that_does_not_fit_says_so)
{
    for (int codec = RPC_JSON; codec <= RPC_PROTO; codec++) {
        AUTO(strbuf_done) struct strbuf out = {0};
        json_t *value = from_json(&all, "{\"inner\":{\"pairs\":{\"key\":\"a long value\"}}}");

        strbuf_init(&out, 20);
        rpc_encode(&all, (enum rpc_codec)codec, value, &out);
        EXPECT(out.truncated);
        json_decref(value);
    }
}

TEST(text_that_is_no_utf8_is_mended)
{
    json_t *good = rpc_text("caf\xc3\xa9"), *bad = rpc_text("a\xff\"b\x01\xc3");

    EXPECT_STR(json_string_value(good), "caf\xc3\xa9");
    EXPECT_STR(json_string_value(bad), "a\xef\xbf\xbd\"b\x01\xef\xbf\xbd");
    json_decref(good);
    json_decref(bad);
}

TEST(base64_of_every_length)
{
    char data[2000];

    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (char)(i * 7);
    for (size_t len = 0; len < sizeof(data); len += len < 10 ? 1 : 97) {
        AUTO(strbuf_done) struct strbuf text = {0}, back = {0};
        strbuf_init(&text, 4096);
        strbuf_init(&back, 4096);
        base64_encode(&text, data, len);
        EXPECT(text.len == (len + 2) / 3 * 4);
        EXPECT(base64_decode(&back, text.buf, text.len) == 0);
        EXPECT(back.len == len && memcmp(back.buf, data, len) == 0);
    }
}

TAP_MAIN
