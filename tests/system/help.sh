#!/bin/bash
# Help, version, manual pages and completion: all there, and all telling the same.
. "$(dirname "$0")/lib.sh"

CLIENT_VERBS="ps create exec repl cp logs kill pause resume fork top ctx secret agents events usage mcp template diff volume link"
VERBS="run acp serve drain backup restore key tenant world audit $CLIENT_VERBS doctor version help"

# ---- help ------------------------------------------------------------------------------------------

for way in --help -h help; do
    sg "$way"
    check "sandglass $way" all status_is 0 -- err_is '' -- out_has '^Usage: sandglass VERB'
    for verb in $VERBS; do
        check "sandglass $way names $verb" out_has "^  $verb +[a-z]"
    done
done
for verb in run acp serve key tenant world $CLIENT_VERBS doctor version; do
    sg "$verb" --help
    check "sandglass $verb --help" all status_is 0 -- err_is '' -- out_has "^Usage: sandglass $verb"
    cp "$T/out" "$T/help"
    sg "$verb" -h
    check "sandglass $verb -h is the same" cmp "$T/help" "$T/out"
    sg help "$verb"
    check "sandglass help $verb is the same" cmp "$T/help" "$T/out"
    check "sandglass $verb --help fits 100 columns" is_not grep -qE '.{101}' "$T/help"
done
sg run --help
for option in file language timeout memory cpus pids disk output-limit mount env env-file user cwd network json \
    approve policy tty quiet hostname help; do
    check "run --help explains --$option" out_has "^  (-[a-z], |    )--$option( |$)"
done
check "run --help tells the exit status" all out_has 124 -- out_has 125 -- out_has 'bad usage'
for words in "500ms" "30s" "5m" "1h" "64M"; do
    check "run --help shows how to write $words" out_has "$words"
done
sg run --help 'print(1)' --memory 64M
check "--help wins" all status_is 0 -- out_has '^Usage: sandglass run'

# ---- mistakes --------------------------------------------------------------------------------------

sg
check "no verb" refuses 2 "no verb given.*sandglass run CODE"
sg frobnicate
check "an unknown verb" refuses 2 "unknown verb 'frobnicate' \(see 'sandglass --help'\)"
sg rnu
check "a misspelt verb is suggested" refuses 2 "unknown verb 'rnu'; did you mean 'run'\?"
sg help nonsense
check "help of an unknown verb" refuses 2 "unknown verb 'nonsense'"
sg help run doctor
check "help of two verbs" refuses 2 "one verb"
"$SG" --help >/dev/full 2>"$T/err"
STATUS=$?
: >"$T/out"
check "help that cannot be written" all is_not status_is 0 -- one_line

# ---- version ---------------------------------------------------------------------------------------

version=$(sed -n 's/^#define SG_VERSION "\(.*\)"/\1/p' "$TOP/include/sandglass.h")
for way in version --version -V; do
    sg "$way"
    check "sandglass $way" gives 0 "sandglass $version"
done
sg version --json
check "version --json" all status_is 0 -- json "r == {'name': 'sandglass', 'version': '$version'}"
run as_nobody "$SG" version
check "version needs no root" gives 0 "sandglass $version"
run as_nobody "$SG" run --help
check "help needs no root" all status_is 0 -- out_has '^Usage'
sg version --frob
check "version knows its options" refuses 2 "unknown option '--frob'"

# ---- manual pages ------------------------------------------------------------------------------------

PAGES="sandglass.1 sandglass.3 sandglass.conf.5"
for verb in run acp serve key tenant world $CLIENT_VERBS doctor; do
    PAGES+=" sandglass-$verb.1"
done
for page in $PAGES; do
    check "$page is written" test -s "$TOP/man/$page.scd"
    scdoc <"$TOP/man/$page.scd" >"$T/$page" 2>"$T/err"
    check "$page is well formed" test -s "$T/$page"
    MANWIDTH=100 man -l "$T/$page" 2>"$T/warnings" | col -b >"$T/${page}.txt"
    check "$page is shown without complaint" all test -s "$T/$page.txt" -- test ! -s "$T/warnings"
done
for verb in run acp serve $CLIENT_VERBS doctor; do
    for option in $("$SG" "$verb" --help | grep -oE '^  (-[a-zA-Z], |    )--[a-z0-9-]+|^  -[a-zA-Z],' | grep -oE -- '--?[a-zA-Z0-9-]+'); do
        check "sandglass-$verb(1) has $option" grep -qE -- "^ *.*(^|[ ,])$option([ ,=]|$)" "$T/sandglass-$verb.1.txt"
    done
done
for option in --help -h --version -V --json; do
    check "sandglass(1) has $option" grep -qE -- "(^|[ ,[])$option([], ]|$)" "$T/sandglass.1.txt"
done
for verb in $VERBS; do
    check "sandglass(1) has $verb" grep -qE "^ +$verb( |$)" "$T/sandglass.1.txt"
done
for function in $(grep -oE '\bsg_[a-z_]+\(' "$TOP/include/sandglass.h" | tr -d '(' | sort -u); do
    check "sandglass(3) has $function" grep -q "$function" "$T/sandglass.3.txt"
done
grep -oE '\bSG_(ERR|STATUS|LIMIT)_[A-Z]+\b' "$TOP/include/sandglass.h" | grep -vE '_(NONE|MAX|SUCCESS|EXECUTION|SETUP)$' |
    sort -u >"$T/words"
while read -r word; do
    check "sandglass(3) has $word" grep -q "$word" "$T/sandglass.3.txt"
done <"$T/words"
for field in stdout stderr results exit_code duration_ms status error_message limit resource_usage limits_applied; do
    check "sandglass-run(1) explains the field $field" grep -qE "^ +(stdout, )?$field" "$T/sandglass-run.1.txt"
done

# ---- completion --------------------------------------------------------------------------------------

COMPLETION=$TOP/completions/sandglass.bash
unset E2B_API_KEY
check "the completion is valid" bash -n "$COMPLETION"
# complete WORD...: what is offered for the last word.
complete_words()
{
    (
        cd "$T" || exit
        # shellcheck disable=SC1090
        . "$COMPLETION"
        compopt() { :; }
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        COMPREPLY=()
        _sandglass
        printf '%s\n' "${COMPREPLY[@]}" | sort | tr '\n' ' '
    )
}
check "it completes verbs" [ "$(complete_words sandglass '')" = \
    "$(tr ' ' '\n' <<<"--help --version $VERBS" | sort | tr '\n' ' ')" ]
check "... that begin so" [ "$(complete_words sandglass d)" = "diff doctor drain " ]
for option in $("$SG" run --help | grep -oE '^  (-[a-zA-Z], |    )--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+'); do
    check "it completes run $option" [ "$(complete_words sandglass run "$option" | tr ' ' '\n' | grep -cx -- "$option")" = 1 ]
done
for option in $("$SG" acp --help | grep -oE '^  (-[a-zA-Z], |    )--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+'); do
    check "it completes acp $option" [ "$(complete_words sandglass acp "$option" | tr ' ' '\n' | grep -cx -- "$option")" = 1 ]
done
for verb in run repl; do
    check "it completes languages of $verb" \
        [ "$(complete_words "$SG" $verb --language '')" = "bash javascript python typescript " ]
done
check "it completes users" [ "$(complete_words sandglass run --user '')" = "root user " ]
check "it completes --network" [ "$(complete_words sandglass run --network b)" = "block " ]
touch "$T/a-file.py"
check "it completes files" [ "$(complete_words sandglass run -f a-fi)" = "a-file.py " ]
for option in $("$SG" doctor --help | grep -oE -- '^  (-[a-zA-Z], |    )--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+'); do
    check "it completes doctor $option" [ "$(complete_words sandglass doctor "$option")" = "$option " ]
done
for verb in $CLIENT_VERBS; do
    for option in $("$SG" "$verb" --help | grep -oE -- '^  (-[a-zA-Z], |    )--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+'); do
        check "it completes $verb $option" \
            [ "$(complete_words sandglass "$verb" "$option" | tr ' ' '\n' | grep -cx -- "$option")" = 1 ]
    done
done
check "it completes the states of ps" [ "$(complete_words sandglass ps --state '')" = "paused running " ]
check "it completes the files of cp" [ "$(complete_words sandglass cp a-fi)" = "a-file.py " ]
check "it asks no server without a key" [ "$(complete_words sandglass exec '')" = " " ]
check "it completes help VERB" [ "$(complete_words sandglass help v)" = "version volume " ]
check "it offers nothing for a number" [ "$(complete_words sandglass run --pids '')" = " " ]
check "bash loads and uses it" \
    [ "$(bash --norc -c '. "$0"; complete -p sandglass' "$COMPLETION")" = "complete -F _sandglass sandglass" ]

finish
