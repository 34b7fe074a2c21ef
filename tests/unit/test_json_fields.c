#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib/json/fields.h"
#include "lib/json/memfd.h"
#include "lib/json/values.h"
#include "tap.h"

static struct sg_error error;
static json_t *tree;

/* The reader of an object, which is written with ' for ". */
static struct fields in_of(const char *text)
{
    char json[1024];

    snprintf(json, sizeof(json), "%s", text);
    for (char *p = json; *p; p++)
        if (*p == '\'')
            *p = '"';
    json_decref(tree);
    tree = json_loads(json, 0, NULL);
    EXPECT(tree != NULL);
    error = (struct sg_error){0};
    return (struct fields){.object = tree, .prefix = "here: ", .e = &error};
}

static void expect_error(const struct fields *in, int code, const char *message)
{
    EXPECT(!fields_ok(in) && in->r == code && error.code == code);
    EXPECT_STR(error.message, message);
}

TEST(right_values_come_back)
{
    static const char *const words[] = {"red", "green"};
    struct fields in = in_of("{'flag': true, 'int': -7, 'count': 5, 'real': 0.5, 'text': 'abc', "
                             "'word': 'green', 'list': [1, 2], 'texts': {'a': 'b'}, "
                             "'object': {'inner': false}}");
    char copy[4] = "";

    EXPECT(field_flag(&in, "flag", false) && field_tristate(&in, "flag") == 1);
    EXPECT(field_int(&in, "int", 0) == -7);
    EXPECT(field_count(&in, "count", 5, 5, 0) == 5);
    EXPECT(field_count(&in, "count", 0, INT64_MAX, 0) == 5);
    EXPECT(field_real(&in, "real", 0.5, 1, 0) > 0.4);
    EXPECT_STR(field_text(&in, "text", 3, ""), "abc");
    field_copy(&in, "text", copy, sizeof(copy));
    EXPECT_STR(copy, "abc");
    EXPECT(field_word(&in, "word", words, 2, 0, "a colour") == 1);
    EXPECT(json_array_size(field_array(&in, "list", 2)) == 2);
    EXPECT(json_object_size(field_texts(&in, "texts", 2)) == 1);
    struct fields object = field_object(&in, "object");
    EXPECT(field_tristate(&object, "inner") == 0);
    fields_known(&object, "inner", "other");
    EXPECT(fields_ok(&in) && fields_ok(&object) && in.r == 0);
}

TEST(absent_and_null_give_the_fallback)
{
    static const char *const words[] = {"red", "green"};
    struct fields in = in_of("{'null': null}");

    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "null" : "absent";

        EXPECT(field_get(&in, name) == NULL);
        EXPECT(field_flag(&in, name, true) && field_tristate(&in, name) == -1);
        EXPECT(field_int(&in, name, -3) == -3 && field_count(&in, name, 1, 2, 9) == 9);
        EXPECT_STR(field_text(&in, name, 0, "x"), "x");
        EXPECT(field_word(&in, name, words, 2, 1, "a colour") == 1);
        EXPECT(!field_array(&in, name, 0) && !field_texts(&in, name, 0));
        struct fields object = field_object(&in, name);
        EXPECT(!object.object && field_flag(&object, "any", true));
    }
    EXPECT(in.r == 0);
}

TEST(null_is_of_the_wrong_type_where_fields_are_strict)
{
    struct fields in = in_of("{'null': null}");

    in.strict = true;
    EXPECT(field_text(&in, "null", 9, NULL) == NULL);
    expect_error(&in, -EINVAL, "here: 'null' must be a string");
}

static void read_all(struct fields *in)
{
    static const char *const words[] = {"red"};

    fields_known(in, "flag", "int", "count", "real", "text", "word", "list", "texts", "object");
    field_flag(in, "flag", false);
    field_int(in, "int", 0);
    field_count(in, "count", 1, 10, 0);
    field_real(in, "real", 0.5, 1, 0);
    field_text(in, "text", 3, NULL);
    field_word(in, "word", words, 1, 0, "red");
    field_array(in, "list", 1);
    field_texts(in, "texts", 3);
    struct fields object = field_object(in, "object");
    field_int(&object, "inner", 0);
}

TEST(an_error_names_the_field)
{
    static const struct {
        const char *text, *message;
        int code;
    } cases[] = {
        {"{'other': 1}", "here: unknown field 'other'", -EINVAL},
        {"{'flag': 1}", "here: 'flag' must be true or false", -EINVAL},
        {"{'int': 1.5}", "here: 'int' must be a whole number", -EINVAL},
        {"{'int': 2147483648}", "here: 'int' must be a number of at most 32 bits", -EINVAL},
        {"{'count': '1'}", "here: 'count' must be a whole number", -EINVAL},
        {"{'count': 0}", "here: 'count' must be from 1 to 10", -EINVAL},
        {"{'count': -1}", "here: 'count' must be from 1 to 10", -EINVAL},
        {"{'count': 11}", "here: 'count' must be from 1 to 10", -EINVAL},
        {"{'count': 4294967297}", "here: 'count' must be a number of at most 32 bits", -EINVAL},
        {"{'real': 2}", "here: 'real' must be a number from 0.5 to 1", -EINVAL},
        {"{'real': 'x'}", "here: 'real' must be a number from 0.5 to 1", -EINVAL},
        {"{'text': {}}", "here: 'text' must be a string", -EINVAL},
        {"{'text': 'abcd'}", "here: 'text' has more than 3 bytes", -EINVAL},
        {"{'word': 'blue'}", "here: 'word' must be red", -EINVAL},
        {"{'list': {}}", "here: 'list' must be an array", -EINVAL},
        {"{'list': [1, 2]}", "here: 'list' has more than 1 entries", -EINVAL},
        {"{'texts': [1]}", "here: 'texts' must be an object", -EINVAL},
        {"{'texts': {'a': 1}}", "here: 'texts' must be an object of strings", -EINVAL},
        {"{'texts': {'ab': 'cd'}}", "here: 'texts' has more than 3 bytes", -E2BIG},
        {"{'object': 'x'}", "here: 'object' must be an object", -EINVAL},
        {"{'object': {'inner': 'x'}}", "here: 'inner' must be a whole number", -EINVAL},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fields in = in_of(cases[i].text);

        read_all(&in);
        expect_error(&in, cases[i].code, cases[i].message);
    }
}

TEST(names_may_stand_without_marks)
{
    struct fields in = in_of("{'text': 1}");

    in.bare = true;
    field_text(&in, "text", 1, NULL);
    expect_error(&in, -EINVAL, "here: text must be a string");
}

static int never(void)
{
    EXPECT(!"called after an error");
    return -EIO;
}

TEST(the_first_error_stays)
{
    struct fields in = in_of("{'a': 1, 'b': 'x', 'c': {'d': 1}, 'n': 3}");
    struct fields inner = field_object(&in, "c");
    char copy[2] = "-";

    EXPECT(field_text(&inner, "d", 9, NULL) == NULL); /* in an object inside */
    EXPECT(!fields_ok(&in) && !fields_ok(&inner));
    field_flag(&in, "a", false);
    fields_known(&in, "z");
    fields_check(&in, never());
    EXPECT(field_wrong(&in, "another") == -EINVAL);
    EXPECT(fields_fail(&in, SG_ERR_LIMIT, -EIO, "another") == -EINVAL);
    /* Right values give the fallback too, so that nothing is begun with half of them. */
    EXPECT(field_int(&in, "n", 9) == 9 && field_count(&in, "n", 0, 5, 9) == 9);
    EXPECT_STR(field_text(&in, "b", 9, "fallback"), "fallback");
    field_copy(&in, "b", copy, sizeof(copy));
    EXPECT_STR(copy, "-");
    EXPECT(field_object(&in, "c").object == NULL);
    expect_error(&in, -EINVAL, "here: 'd' must be a string");
}

TEST(other_checks_add_their_error)
{
    struct fields in = in_of("{}");

    fields_check(&in, err_set(in.e, SG_ERR_DENIED, -EACCES, "not for you"));
    expect_error(&in, -EACCES, "not for you");
    in = in_of("{}");
    fields_invalid(&in, "without the %s", "prefix");
    expect_error(&in, -EINVAL, "without the prefix");
    in = in_of("{}");
    field_copy(&in, "name", (char[4]){""}, 4);
    expect_error(&in, -EINVAL, "here: 'name' is missing");
}

TEST(an_error_needs_no_place)
{
    struct fields in = in_of("{'a': 1}");

    in.e = NULL;
    field_text(&in, "a", 1, NULL);
    EXPECT(in.r == -EINVAL);
}

TEST(values_have_defaults)
{
    struct fields in = in_of("{'a': 'x', 'n': 7, 't': true}");

    EXPECT_STR(jr_text(in.object, "a"), "x");
    EXPECT_STR(jr_text(in.object, "n"), "");
    EXPECT(jr_text_or(NULL, "a", NULL) == NULL);
    EXPECT(jr_int(in.object, "n") == 7 && jr_int(in.object, "a") == 0);
    EXPECT(jr_flag(in.object, "t") && !jr_flag(in.object, "n"));
}

TEST(trees_travel_in_memfds)
{
    int fd = memfd_of_json("test", json_pack("{s:i}", "a", 1), 7);
    json_t *back = NULL;

    EXPECT(fd >= 0 && write(fd, "x", 1) < 0); /* sealed */
    for (int i = 0; i < 2; i++) {             /* from the beginning each time */
        EXPECT(memfd_read_json(fd, 7, &back) == 0);
        EXPECT(jr_int(back, "a") == 1);
        json_decref(back);
    }
    EXPECT(memfd_read_json(fd, 6, &back) < 0);
    close(fd);
    EXPECT(memfd_of_json("test", json_pack("{s:i}", "a", 1), 6) == -E2BIG);
    EXPECT(memfd_of_json("test", NULL, 6) == -ENOMEM);
    EXPECT(memfd_read_json(-1, 6, &back) == -EBADF);
    json_decref(steal_ptr(&tree));
}

TAP_MAIN
