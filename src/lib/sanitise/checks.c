/* Check digits and tables: whether a number of the right form can have been given to somebody. */

#include "lib/sanitise/impl.h"

bool check_luhn(const char *digits, size_t n)
{
    unsigned sum = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned d = (unsigned)(digits[n - 1 - i] - '0');
        if (i % 2)
            d = d * 2 > 9 ? d * 2 - 9 : d * 2;
        sum += d;
    }
    return sum % 10 == 0;
}

/* The card networks: the first digits of their numbers, as a range, and the lengths. */
static const struct {
    uint32_t low, high; /* compared with as many first digits as these have */
    uint8_t min, max;
} issuers[] = {
    {4, 4, 13, 13},       {4, 4, 16, 16},       {4, 4, 19, 19},   /* Visa */
    {51, 55, 16, 16},     {2221, 2720, 16, 16},                   /* Mastercard */
    {34, 34, 15, 15},     {37, 37, 15, 15},                       /* American Express */
    {6011, 6011, 16, 19}, {644, 649, 16, 19},   {65, 65, 16, 19}, /* Discover */
    {300, 305, 14, 14},   {36, 36, 14, 14},     {38, 39, 14, 16}, /* Diners */
    {3528, 3589, 16, 19},                                         /* JCB */
    {62, 62, 16, 19},                                             /* UnionPay */
    {5018, 5018, 12, 19}, {5020, 5020, 12, 19}, {5038, 5038, 12, 19}, {5893, 5893, 12, 19},
    {6304, 6304, 12, 19}, {6759, 6759, 12, 19}, {6761, 6763, 12, 19}, /* Maestro */
};

bool check_card(const char *digits, size_t n)
{
    bool same = true;

    for (size_t i = 1; i < n; i++)
        same = same && digits[i] == digits[0];
    if (same || !check_luhn(digits, n))
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(issuers); i++) {
        uint32_t prefix = 0;
        size_t len = 0;
        for (uint32_t v = issuers[i].low; v; v /= 10)
            len++;
        for (size_t k = 0; k < len; k++)
            prefix = prefix * 10 + (uint32_t)(digits[k] - '0');
        if (prefix >= issuers[i].low && prefix <= issuers[i].high && n >= issuers[i].min &&
            n <= issuers[i].max)
            return true;
    }
    return false;
}

/* The registry of IBANs: country and length. */
static const char iban_lengths[] =
    "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BI27BR29BY28CH21CR22CY28CZ24DE22DJ27DK18DO28EE20EG29ES24"
    "FI18FK18FO18FR27GB22GE22GI23GL18GR27GT28HN28HR21HU28IE22IL23IQ23IS26IT27JO30KW30KZ20LB28LC32"
    "LI21LT20LU20LV21LY25MC27MD24ME22MK19MN20MR27MT31MU30NI28NL18NO15OM23PK24PL28PS29PT25QA29RO24"
    "RS22RU33SA24SC31SD18SE24SI19SK24SM27SO23ST25SV28TL23TN24TR26UA29VA22VG24XK20YE30";

size_t check_iban_length(const char country[2])
{
    for (const char *p = iban_lengths; *p; p += 4) {
        if (p[0] == country[0] && p[1] == country[1])
            return (size_t)(p[2] - '0') * 10 + (size_t)(p[3] - '0');
    }
    return 0;
}

bool check_iban(const char *text, size_t n)
{
    unsigned rest = 0;

    if (n < 5 || check_iban_length(text) != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        char c = text[(i + 4) % n]; /* the first four characters are moved to the end */
        if (c >= '0' && c <= '9')
            rest = (rest * 10 + (unsigned)(c - '0')) % 97;
        else
            rest = (rest * 100 + (unsigned)(c - 'A') + 10) % 97;
    }
    return rest == 1;
}

/* Weights are 8 to 2 for the digits, and 9 for the second letter of numbers given out since 2013, A
 * to I. The older second letters W, T, X and Z do not count. */
bool check_ppsn(const char *digits, char letter, char second)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < 7; i++)
        sum += (unsigned)(digits[i] - '0') * (8 - i);
    if (second >= 'A' && second <= 'I')
        sum += (unsigned)(second - 'A' + 1) * 9;
    else if (second && !strchr("WTXZ", second))
        return false;
    return letter == (sum % 23 ? (char)('A' + sum % 23 - 1) : 'W');
}

/* False for numbers that the administration never gives out. */
bool check_ssn(const char *digits)
{
    if (digits[0] == '9' || memcmp(digits, "000", 3) == 0 || memcmp(digits, "666", 3) == 0)
        return false;
    return memcmp(digits + 3, "00", 2) != 0 && memcmp(digits + 5, "0000", 4) != 0;
}

bool check_nanp(const char *digits)
{
    bool area = digits[0] >= '2' && !(digits[1] == '1' && digits[2] == '1');

    return area && digits[3] >= '2' && !(digits[4] == '1' && digits[5] == '1');
}

/* Calling codes and the lengths of national numbers. Codes of three digits that are not in the
 * table have 7 to 10 digits. */
static const struct {
    uint16_t code;
    uint8_t min, max;
} calling_codes[] = {
    {7, 10, 10}, {20, 8, 10},  {27, 9, 9},   {30, 10, 10}, {31, 9, 9},   {32, 8, 9},   {33, 9, 9},
    {34, 9, 9},  {36, 8, 9},   {39, 8, 11},  {40, 9, 9},   {41, 9, 9},   {43, 7, 13},  {44, 9, 10},
    {45, 8, 8},  {46, 7, 10},  {47, 8, 8},   {48, 9, 9},   {49, 7, 12},  {51, 8, 9},   {52, 10, 10},
    {53, 8, 8},  {54, 10, 11}, {55, 10, 11}, {56, 9, 9},   {57, 10, 10}, {58, 10, 10}, {60, 8, 10},
    {61, 9, 9},  {62, 8, 12},  {63, 8, 10},  {64, 8, 10},  {65, 8, 8},   {66, 8, 9},   {81, 9, 10},
    {82, 8, 10}, {84, 9, 10},  {86, 10, 11}, {90, 10, 10}, {91, 10, 10}, {92, 9, 10},  {93, 9, 9},
    {94, 9, 9},  {95, 7, 10},  {98, 10, 10}, {353, 7, 9},  {351, 9, 9},  {352, 6, 11}, {358, 6, 11},
    {372, 7, 8}, {420, 9, 9},  {421, 9, 9},
};

bool check_phone(const char *digits, size_t n)
{
    unsigned code = 0;

    if (n < 8 || n > 15 || digits[0] == '0')
        return false;
    if (digits[0] == '1')
        return n == 11 && check_nanp(digits + 1);
    for (size_t len = 1; len <= 3; len++) {
        code = code * 10 + (unsigned)(digits[len - 1] - '0');
        for (size_t i = 0; i < ARRAY_SIZE(calling_codes); i++) {
            if (calling_codes[i].code == code)
                return n - len >= calling_codes[i].min && n - len <= calling_codes[i].max;
        }
    }
    return n >= 10 && n <= 13;
}
