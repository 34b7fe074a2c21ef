/* What sandboxes say on its way out: the modes, cells of the interpreter, what is stored. */
#include "front/core/output_filter.h"
#include "interpreter_host.h"

#define DONE_LINE "{\"type\":\"end_of_execution\"}\n"
#define FIRST     "{\"type\":\"number_of_executions\",\"execution_count\":1}\n"
#define OUT(text) "{\"type\":\"stdout\",\"text\":\"" text "\",\"timestamp\":\"T\"}\n"

static void begin_with(const char *patterns, enum settings_sanitise mode)
{
    struct sg_error e;

    begin();
    settings_init(&front.settings);
    front.settings.sanitise_streams = mode;
    EXPECT(output_filter_set_patterns(&front, patterns, &e) == 0);
}

static void begin_cell(void)
{
    execute("{\"code\":\"1\"}");
    EXPECT(agent_request_log(OP_KERNEL_EXECUTE));
    agent_executing(1, "");
}

static void say(const char *text)
{
    agent_data(CHAN_STDOUT, text, strlen(text));
}

/* ---- cells ----------------------------------------------------------------------------------- */

TEST(output_is_sanitised_over_its_frames)
{
    begin_with("", SETTINGS_ENFORCE);
    begin_cell();
    say("mail john@exa");
    say("mple.com now\n");
    agent_end(KERNEL_DONE, 0, false);
    expect_lines(FIRST OUT("mail [EMAIL] now\\n") DONE_LINE);
    end();
}

TEST(the_end_of_a_cell_lets_the_rest_go)
{
    begin_with("", SETTINGS_ENFORCE);
    begin_cell();
    say("card 4111 1111 1111 1111");
    agent_end(KERNEL_DONE, 0, false);
    expect_lines(FIRST OUT("card [CARD]") DONE_LINE);
    end();
}

TEST(off_changes_nothing)
{
    begin_with("", SETTINGS_OFF);
    begin_cell();
    say("john@example.com");
    agent_end(KERNEL_DONE, 0, false);
    expect_lines(FIRST OUT("john@example.com") DONE_LINE);
    end();
}

TEST(report_only_changes_nothing)
{
    begin_with("", SETTINGS_REPORT_ONLY);
    begin_cell();
    say("john@example.com");
    agent_end(KERNEL_DONE, 0, false);
    expect_lines(FIRST OUT("john@example.com") DONE_LINE);
    end();
}

/* Nobody has to wait for the end of a line that does not come. */
TEST(a_prompt_is_shown)
{
    begin_with("", SETTINGS_ENFORCE);
    begin_cell();
    say("Your name: ");
    EXPECT(client_wait(&client, "Your name: "));
    say("Joe\n");
    agent_end(KERNEL_DONE, 0, false);
    expect_lines(FIRST OUT("Your name: ") OUT("Joe\\n") DONE_LINE);
    end();
}

TEST(errors_are_sanitised)
{
    begin_with("", SETTINGS_ENFORCE);
    begin_cell();
    AGENT_PACKET("Re");
    AGENT_PACKET("Tname\0"
                 "Error");
    AGENT_PACKET("Tvalue\0"
                 "no route to 10.1.2.3");
    AGENT_PACKET("Ttraceback\0"
                 "line 1\nconnect('postgres://u:s3cret@db/x')");
    AGENT_PACKET("r");
    agent_end(KERNEL_DONE, 0, false);
    expect_lines(FIRST "{\"type\":\"error\",\"name\":\"Error\",\"value\":\"no route to "
                       "[IP_ADDRESS]\",\"traceback\":\"line "
                       "1\\nconnect('[DATABASE_URL]')\"}\n" DONE_LINE);
    end();
}

/* Texts and JSON, over their packets; pictures are not text, whatever is in them. */
TEST(results_are_sanitised)
{
    begin_with("", SETTINGS_ENFORCE);
    begin_cell();
    AGENT_PACKET("Rm");
    AGENT_PACKET("Ttext\0"
                 "to john@exa");
    AGENT_PACKET("Ttext\0"
                 "mple.com");
    AGENT_PACKET("Jjson\0"
                 "{\"card\": 41111111");
    AGENT_PACKET("Jjson\0"
                 "11111111, \"ip\": [\"10.1.2.3\"]}");
    AGENT_PACKET("Tpng\0"
                 "4111111111111111");
    AGENT_PACKET("Thtml\0"
                 "<td>10.1.2.3</td>");
    AGENT_PACKET("r");
    agent_end(KERNEL_DONE, 0, false);
    expect_lines(FIRST
                 "{\"type\":\"result\",\"is_main_result\":true,\"text\":\"to [EMAIL]\","
                 "\"json\":{\"card\":\"[CARD]\",\"ip\":[\"[IP_ADDRESS]\"]},"
                 "\"png\":\"4111111111111111\",\"html\":\"<td>[IP_ADDRESS]</td>\"}\n" DONE_LINE);
    end();
}

/* JSON that is none is told to be none, also if that shows in what was held back. */
TEST(json_that_is_none_is_null)
{
    begin_with("", SETTINGS_ENFORCE);
    begin_cell();
    AGENT_PACKET("Rm");
    AGENT_PACKET("Jjson\0"
                 "{\"a\": nonsense");
    AGENT_PACKET("Ttext\0"
                 "x");
    AGENT_PACKET("r");
    agent_end(KERNEL_DONE, 0, false);
    client_wait(&client, "\r\n0\r\n\r\n");
    EXPECT(strstr(unchunked(), "\"json\":null,\"text\":\"x\"}\n"));
    end();
}

/* Output before a result stays before it. */
TEST(the_order_stays)
{
    begin_with("", SETTINGS_ENFORCE);
    begin_cell();
    say("before");
    AGENT_PACKET("Rm");
    AGENT_PACKET("Ttext\0"
                 "2");
    AGENT_PACKET("r");
    say("after");
    agent_end(KERNEL_DONE, 0, false);
    expect_lines(FIRST OUT(
        "before") "{\"type\":\"result\",\"is_main_result\":true,\"text\":\"2\"}\n" OUT("after")
                     DONE_LINE);
    end();
}

/* ---- patterns -------------------------------------------------------------------------------- */

TEST(patterns_can_change_while_cells_run)
{
    struct sg_error e;

    begin_with("badge = EMP-[0-9]{6}", SETTINGS_ENFORCE);
    begin_cell();
    say("EMP-123456\n");
    EXPECT(client_wait(&client, "[BADGE]"));
    EXPECT(output_filter_set_patterns(&front, "project = Atlas", &e) == 0);
    say("EMP-123456 Atlas\n");
    agent_end(KERNEL_DONE, 0, false);
    expect_lines(FIRST OUT("[BADGE]\\n") OUT("[BADGE] Atlas\\n") DONE_LINE);
    begin_cell();
    say("EMP-123456 Atlas\n");
    agent_end(KERNEL_DONE, 0, false);
    expect_lines(FIRST OUT("EMP-123456 [PROJECT]\\n") DONE_LINE);
    /* A mistake leaves them as they were. */
    EXPECT(output_filter_set_patterns(&front, "project = (", &e) < 0);
    EXPECT(strstr(e.message, "sanitise_patterns: line 1"));
    begin_cell();
    say("Atlas\n");
    agent_end(KERNEL_DONE, 0, false);
    expect_lines(FIRST OUT("[PROJECT]\\n") DONE_LINE);
    end();
}

/* ---- modes ----------------------------------------------------------------------------------- */

static enum sanitise_mode mode_for(uint8_t tenant, uint8_t key, const struct sanitise_level *call,
                                   bool *refused)
{
    struct store_tenant t = {.sanitise = tenant, .key_sanitise = key};

    return output_filter_mode(&front, &t, true, call, refused);
}

TEST(server_tenant_key_and_call)
{
    const struct sanitise_level off = {.set = true, .mode = SANITISE_OFF};
    bool refused;

    settings_init(&front.settings);
    EXPECT(mode_for(0, 0, NULL, NULL) == SANITISE_ENFORCE);
    EXPECT(mode_for(2, 0, NULL, NULL) == SANITISE_REPORT);
    EXPECT(mode_for(2, 1, NULL, NULL) == SANITISE_ENFORCE);
    EXPECT(mode_for(2, 1, &off, &refused) == SANITISE_OFF && !refused);
    EXPECT(mode_for(200, 200, NULL, NULL) == SANITISE_ENFORCE); /* not what we would write */
    front.settings.sanitise_always = true;
    EXPECT(mode_for(0, 0, &off, &refused) == SANITISE_ENFORCE && refused);
    EXPECT(mode_for(0, 3, NULL, &refused) == SANITISE_ENFORCE && refused);
    front.settings.sanitise_always = false;
    struct store_tenant t = {.sanitise = 2, .sanitise_always = true};
    EXPECT(output_filter_mode(&front, &t, true, &off, &refused) == SANITISE_REPORT && refused);
    /* Those of E2B's API have a setting of their own. */
    t = (struct store_tenant){0};
    EXPECT(output_filter_mode(&front, &t, false, NULL, NULL) == SANITISE_OFF);
    t.sanitise = 1;
    EXPECT(output_filter_mode(&front, &t, false, NULL, NULL) == SANITISE_ENFORCE);
}

TEST(stored_messages_are_always_sanitised)
{
    char message[64];
    struct sg_error e;

    settings_init(&front.settings);
    front.settings.sanitise = SETTINGS_OFF;
    EXPECT(output_filter_set_patterns(&front, "", &e) == 0);
    output_filter_stored_message(&front, "cannot reach 10.1.2.3", message, sizeof(message));
    EXPECT_STR(message, "cannot reach [IP_ADDRESS]");
    output_filter_stored_message(&front, "plain", message, 4);
    EXPECT_STR(message, "pla");
}

TAP_MAIN
