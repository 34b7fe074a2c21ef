/* The only list: doubly linked, circular, made of links that are embedded in its members.
 *
 *   struct call { struct list in_line; ... };    a member
 *   struct line { struct list calls; ... };      a head
 *
 *   list_append(&line->calls, &call->in_line);
 *   LIST_EACH(struct call, c, &line->calls, in_line)
 *       ...
 *
 * Zero bytes are an empty head, or a link that is in no list: nothing needs to be initialised. A
 * link takes itself out without knowing the head. The members point at the head, so a head that has
 * members must stay where it is; list_move gives them to another. */
#pragma once

#include "lib/base/base.h"

struct list {
    struct list *next, *prev;
};

static inline bool list_empty(const struct list *head)
{
    return !head->next || head->next == head;
}

/* Whether the link is in a list. */
static inline bool list_linked(const struct list *link)
{
    return link->next != NULL;
}

/* Puts the link in front of `at`, which is a member. With the head as `at`: at the end. */
static inline void list_insert(struct list *at, struct list *link)
{
    if (!at->next)
        at->next = at->prev = at;
    *link = (struct list){.next = at, .prev = at->prev};
    link->prev->next = at->prev = link;
}

static inline void list_append(struct list *head, struct list *link)
{
    list_insert(head, link);
}

/* Puts the link at the front. */
static inline void list_push(struct list *head, struct list *link)
{
    list_insert(head->next ? head->next : head, link);
}

/* Does nothing if the link is in no list. */
static inline void list_remove(struct list *link)
{
    if (!link->next)
        return;
    link->next->prev = link->prev;
    link->prev->next = link->next;
    *link = (struct list){0};
}

/* Gives all members to a head that has none. */
static inline void list_move(struct list *from, struct list *to)
{
    if (list_empty(from))
        return;
    list_insert(from->next, to);
    list_remove(from);
}

/* The member after `at`, which may be the head; NULL at the end. */
static inline struct list *list_next(const struct list *head, const struct list *at)
{
    return at->next == head ? NULL : at->next;
}

static inline void *list_entry_(struct list *link, size_t offset)
{
    return link ? (char *)link - offset : NULL;
}

static inline void *list_pop_(struct list *head, size_t offset)
{
    struct list *first = list_next(head, head);

    if (first)
        list_remove(first);
    return list_entry_(first, offset);
}

/* NULL if there is none. LIST_POP takes the first out. */
#define LIST_NEXT(type, head, at, member) \
    ((type *)list_entry_(list_next(head, at), offsetof(type, member.next)))
#define LIST_FIRST(type, head, member) LIST_NEXT(type, head, head, member)
#define LIST_POP(type, head, member)   ((type *)list_pop_(head, offsetof(type, member.next)))

/* From the first to the last. The loop may take out or free the member that it is at, but not the
 * one after it. */
#define LIST_EACH(type, at, head, member)                       \
    for (type *at = LIST_FIRST(type, head, member), *at##_next; \
         at && (at##_next = LIST_NEXT(type, head, &at->member, member), true); at = at##_next)

/* The first member that meets the condition, which calls it `at`; NULL: none does. */
#define LIST_FIND(type, at, head, member, condition) \
    ({                                               \
        type *found_ = NULL;                         \
        LIST_EACH(type, at, head, member)            \
            if (condition) {                         \
                found_ = at;                         \
                break;                               \
            }                                        \
        found_;                                      \
    })
