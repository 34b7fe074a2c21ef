/* Frames: the layout on the wire, and that nothing malformed gets through. */
#include "lib/channel/frame.h"
#include "wire/agent.h"
#include "tap.h"

static uint8_t buf[FRAME_HEADER + FRAME_PAYLOAD_MAX + 1];

static void header(uint32_t len, uint32_t stream, uint8_t type, uint8_t sub)
{
    memset(buf, 0, FRAME_HEADER);
    for (unsigned i = 0; i < 4; i++) {
        buf[i] = (uint8_t)(len >> (8 * i));
        buf[4 + i] = (uint8_t)(stream >> (8 * i));
    }
    buf[8] = type;
    buf[9] = sub;
}

static int decode(size_t len)
{
    struct frame f;

    return frame_decode(buf, len, &f);
}

TEST(layout_is_little_endian)
{
    static const uint8_t want[FRAME_HEADER] = {0x03, 0x02, 0, 0, 0x78, 0x56,
                                               0x34, 0x12, 2, 1, 0,    0};
    struct frame f = {.stream = 0x12345678, .type = FRAME_DATA, .sub = CHAN_STDOUT, .len = 0x203};
    uint8_t out[FRAME_HEADER];

    frame_encode_header(out, &f);
    EXPECT(memcmp(out, want, sizeof(out)) == 0);
}

TEST(what_was_encoded_is_decoded)
{
    struct frame f = {.stream = 7, .type = FRAME_EVENT, .sub = EVENT_ENTRY, .len = 5}, got;

    frame_encode_header(buf, &f);
    memcpy(buf + FRAME_HEADER, "hello", 5);
    EXPECT(frame_decode(buf, FRAME_HEADER + 5, &got) == FRAME_HEADER + 5);
    EXPECT(got.stream == 7 && got.type == FRAME_EVENT && got.sub == EVENT_ENTRY && got.len == 5);
    EXPECT(got.payload == buf + FRAME_HEADER);
}

TEST(every_shorter_input_asks_for_more)
{
    header(20, 1, FRAME_DATA, CHAN_STDIN);
    for (size_t n = 0; n < FRAME_HEADER + 20; n++)
        EXPECT(decode(n) == 0);
    EXPECT(decode(FRAME_HEADER + 20) == FRAME_HEADER + 20);
    EXPECT(decode(FRAME_HEADER + 21) == FRAME_HEADER + 20);
}

TEST(payload_of_the_largest_size_and_one_more)
{
    header(FRAME_PAYLOAD_MAX, 1, FRAME_DATA, 0);
    EXPECT(decode(sizeof(buf)) == FRAME_HEADER + FRAME_PAYLOAD_MAX);
    header(FRAME_PAYLOAD_MAX + 1, 1, FRAME_DATA, 0);
    EXPECT(decode(sizeof(buf)) == -EPROTO);
    header(UINT32_MAX, 1, FRAME_DATA, 0);
    EXPECT(decode(FRAME_HEADER) == -EPROTO); /* known from the header alone */
}

TEST(stream_zero_unknown_type_and_reserved_bytes_are_refused)
{
    header(1, 0, FRAME_DATA, 0);
    EXPECT(decode(13) == -EPROTO);
    header(0, 1, 0, 0);
    EXPECT(decode(12) == -EPROTO);
    header(0, 1, FRAME_TYPE_MAX_, 0);
    EXPECT(decode(12) == -EPROTO);
    header(0, 1, 255, 0);
    EXPECT(decode(12) == -EPROTO);
    for (unsigned i = 10; i < 12; i++) {
        header(0, 1, FRAME_EOF, 0);
        EXPECT(decode(12) == 12);
        buf[i] = 1;
        EXPECT(decode(12) == -EPROTO);
    }
}

TEST(length_and_sub_must_fit_the_type)
{
    static const struct {
        uint32_t len;
        uint8_t type, sub;
        bool ok;
    } cases[] = {
        {4, FRAME_OPEN, OP_PING, true},
        {3, FRAME_OPEN, OP_PING, false},
        {4, FRAME_OPEN, 0, false},
        {4, FRAME_OPEN, 255, true}, /* unknown, but the agent can say so */
        {1, FRAME_DATA, CHAN_KERNEL, true},
        {1, FRAME_DATA, CHAN_KERNEL + 1, false},
        {0, FRAME_DATA, CHAN_STDOUT, false},
        {1, FRAME_EOF, 0, false},
        {0, FRAME_EOF, 1, false},
        {0, FRAME_CONTROL, 0, false},
        {0, FRAME_CONTROL, CONTROL_MAX_, false},
        {8, FRAME_CONTROL, CONTROL_RESIZE, true},
        {0, FRAME_EVENT, 0, false},
        {0, FRAME_EVENT, EVENT_MAX_, false},
        {0, FRAME_EVENT, EVENT_WATCHING, true},
        {8, FRAME_END, 0, false},
        {9, FRAME_END, 0, true},
        {9, FRAME_END, 1, false},
        {0, FRAME_CANCEL, 0, true},
        {1, FRAME_CANCEL, 0, false},
        {4, FRAME_CREDIT, 0, true},
        {3, FRAME_CREDIT, 0, false},
        {5, FRAME_CREDIT, 0, false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        header(cases[i].len, 1, cases[i].type, cases[i].sub);
        int want = cases[i].ok ? (int)(FRAME_HEADER + cases[i].len) : -EPROTO;
        if (decode(sizeof(buf)) != want)
            printf("# case %zu: type %u\n", i, cases[i].type);
        EXPECT(decode(sizeof(buf)) == want);
    }
}

TAP_MAIN
