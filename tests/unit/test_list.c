#include "lib/base/list.h"
#include "tap.h"

struct item {
    int number;
    struct list link, other;
};

/* The numbers of a list, read as the digits of one number. */
static int digits(const struct list *head)
{
    int n = 0;

    LIST_EACH(struct item, x, head, link)
        n = n * 10 + x->number;
    return n;
}

TEST(zero_bytes_are_an_empty_list)
{
    struct list head = {0};
    struct item x = {0};

    EXPECT(list_empty(&head) && !list_linked(&x.link));
    EXPECT(!LIST_FIRST(struct item, &head, link) && !LIST_POP(struct item, &head, link));
    EXPECT(digits(&head) == 0);
    list_remove(&x.link);
    EXPECT(list_empty(&head));
}

TEST(members_keep_their_order)
{
    struct list head = {0};
    struct item x[4] = {{.number = 1}, {.number = 2}, {.number = 3}, {.number = 4}};

    list_append(&head, &x[1].link);
    list_append(&head, &x[3].link);
    list_push(&head, &x[0].link);
    list_insert(&x[3].link, &x[2].link);
    EXPECT(digits(&head) == 1234 && !list_empty(&head));
    EXPECT(LIST_FIRST(struct item, &head, link) == &x[0]);
    EXPECT(LIST_NEXT(struct item, &head, &x[0].link, link) == &x[1]);
    EXPECT(!LIST_NEXT(struct item, &head, &x[3].link, link));
}

TEST(a_member_takes_itself_out)
{
    struct list head = {0};
    struct item x[3] = {{.number = 1}, {.number = 2}, {.number = 3}};

    for (int i = 0; i < 3; i++)
        list_append(&head, &x[i].link);
    list_remove(&x[1].link);
    list_remove(&x[1].link);
    EXPECT(digits(&head) == 13 && !list_linked(&x[1].link));
    list_append(&head, &x[1].link);
    EXPECT(digits(&head) == 132);
    EXPECT(LIST_POP(struct item, &head, link) == &x[0]);
    EXPECT(LIST_POP(struct item, &head, link) == &x[2]);
    EXPECT(LIST_POP(struct item, &head, link) == &x[1]);
    EXPECT(list_empty(&head) && !LIST_POP(struct item, &head, link));
    list_push(&head, &x[2].link);
    EXPECT(digits(&head) == 3);
}

TEST(a_loop_may_free_where_it_is)
{
    struct list head = {0};
    int sum = 0;

    for (int i = 1; i <= 9; i++) {
        struct item *x = xcalloc(1, sizeof(*x));
        x->number = i;
        list_append(&head, &x->link);
    }
    LIST_EACH(struct item, x, &head, link) {
        if (x->number == 9)
            break;
        sum += x->number;
        list_remove(&x->link);
        free(x);
    }
    EXPECT(sum == 36 && digits(&head) == 9);
    free(LIST_POP(struct item, &head, link));
}

TEST(all_members_move_to_another_head)
{
    struct list from = {0}, to = {0};
    struct item x[2] = {{.number = 1}, {.number = 2}};

    list_move(&from, &to);
    EXPECT(list_empty(&to));
    list_append(&from, &x[0].link);
    list_append(&from, &x[1].link);
    list_move(&from, &to);
    EXPECT(list_empty(&from) && digits(&to) == 12);
    list_remove(&x[0].link);
    list_remove(&x[1].link);
    EXPECT(list_empty(&to));
}

TEST(a_member_may_be_in_two_lists)
{
    struct list one = {0}, two = {0};
    struct item x = {.number = 7};

    list_append(&one, &x.link);
    list_append(&two, &x.other);
    list_remove(&x.link);
    EXPECT(list_empty(&one) && LIST_FIRST(struct item, &two, other) == &x);
}

TAP_MAIN
