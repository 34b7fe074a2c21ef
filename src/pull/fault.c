#include "pull/fault.h"

const char *fault_word(int code)
{
    static const struct {
        int code;
        const char *word;
    } words[] = {
        {-EINVAL, "invalid"},      {-EACCES, "denied"},          {-ENOENT, "not_found"},
        {-ENOEXEC, "platform"},    {-EOPNOTSUPP, "unsupported"}, {-EFBIG, "too_large"},
        {-EBADMSG, "corrupt"},     {-EPERM, "forbidden"},        {-EKEYREJECTED, "certificate"},
        {-ENETUNREACH, "network"}, {-ETIMEDOUT, "timeout"},      {-EBUSY, "busy"},
        {-ECANCELED, "cancelled"}, {-ENOSPC, "storage"},         {-EDQUOT, "storage"},
        {-EIO, "storage"},         {-EROFS, "storage"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (words[i].code == code)
            return words[i].word;
    return "internal";
}
