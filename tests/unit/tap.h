/* TEST(name) { EXPECT(...); } — cases register themselves in a section; output is TAP. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tap_case {
    const char *name;
    void (*fn)(void);
};

extern const struct tap_case __start_tap[], __stop_tap[];
extern int tap_failures;

#define TEST(n)                                                                          \
    static void test_##n(void);                                                          \
    static const struct tap_case tap_##n                                                 \
        __attribute__((used, section("tap"), aligned(sizeof(void *)))) = {#n, test_##n}; \
    static void test_##n(void)

#define EXPECT(x)                                                    \
    do {                                                             \
        if (!(x)) {                                                  \
            tap_failures++;                                          \
            printf("# %s:%d: EXPECT(%s)\n", __FILE__, __LINE__, #x); \
        }                                                            \
    } while (0)

#define EXPECT_STR(a, b)                                                       \
    do {                                                                       \
        const char *a_ = (a), *b_ = (b);                                       \
        if (strcmp(a_, b_) != 0) {                                             \
            tap_failures++;                                                    \
            printf("# %s:%d: '%s' is not '%s'\n", __FILE__, __LINE__, a_, b_); \
        }                                                                      \
    } while (0)

#define TAP_MAIN                                                                  \
    int tap_failures;                                                             \
    int main(void)                                                                \
    {                                                                             \
        int n = 0, failed = 0;                                                    \
        for (const struct tap_case *c = __start_tap; c < __stop_tap; c++) {       \
            tap_failures = 0;                                                     \
            c->fn();                                                              \
            printf("%s %d - %s\n", tap_failures ? "not ok" : "ok", ++n, c->name); \
            failed += tap_failures != 0;                                          \
        }                                                                         \
        printf("1..%d\n", n);                                                     \
        return failed != 0;                                                       \
    }
