# shellcheck shell=bash
# What tests that need servers and npm's packages are made of: tests/e2e/run and tests/programs/run source this. Servers, a
# certificate, and files of tests that run side by side, whose TAP becomes one stream. The file that sources it says with
# `run_file NAME` how one of them is run.
# shellcheck source=tests/system/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../system/lib.sh"

JOBS_AT_ONCE=${E2E_JOBS:-3}
SERVERS=()
export SANDGLASS=$SG PYTHONDONTWRITEBYTECODE=1

unset E2B_API_KEY E2B_API_URL E2B_SANDBOX_URL E2B_DOMAIN E2B_DEBUG

leave()
{
    local status=$? pid

    [ "$BASHPID" -eq $$ ] || return
    for pid in "${SERVERS[@]}"; do
        kill -KILL "$pid" 2>/dev/null
    done
    (exit "$status")
    at_exit
}
trap leave EXIT

bail()
{
    echo "Bail out! $*"
    exit 1
}

# need_modules FOLDER...: the packages of these lock files, each in build/FOLDER, and Node.js 22 as `node`.
need_modules()
{
    "$TOP/tools/npm-modules" node "$@" >"$T/npm.log" 2>&1 || {
        tail -n 30 "$T/npm.log" | sed 's/^/# /'
        bail "npm ci failed"
    }
    export PATH=$TOP/build/node/node_modules/node-22/bin:$PATH
}

# ---- servers -------------------------------------------------------------------------------------

free_port()
{
    "$PY" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# start_server NAME OPTION...: what it prints is in $T/NAME.out, its pid is the last of $SERVERS.
start_server()
{
    local name=$1

    shift
    "$SG" serve --state "$T/$name" "$@" >"$T/$name.out" 2>"$T/$name.err" &
    SERVERS+=($!)
    if ! until_true grep -q 'export E2B_API_KEY=' "$T/$name.out"; then
        tail -n 20 "$T/$name.out" "$T/$name.err" | sed 's/^/# /'
        bail "the server did not say that it is ready"
    fi
}

# What the server told its user to export: told NAME VARIABLE
told()
{
    (eval "$(grep -E '^ *export ' "$T/$1.out")" && echo "${!2}")
}

# stop_server NAME PID: asks it to end, and waits.
stop_server()
{
    local name=$1 pid=$2 i

    kill -TERM "$pid"
    for ((i = 0; i < 400; i++)); do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    kill -KILL "$pid" 2>/dev/null
    wait "$pid"
    STATUS=$?
    cp "$T/$name.err" "$T/err"
    : >"$T/out"
}

# A key and a certificate for *.box.test, signed by an authority of its own.
make_certificate()
{
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj '/CN=test authority' \
        -keyout "$T/ca.key" -out "$T/ca.pem" &&
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj '/CN=box.test' \
            -keyout "$T/tls.key" -out "$T/tls.csr" &&
        openssl x509 -req -in "$T/tls.csr" -CA "$T/ca.pem" -CAkey "$T/ca.key" -CAcreateserial -days 2 \
            -extfile <(echo 'subjectAltName=DNS:box.test,DNS:*.box.test') -out "$T/tls.pem"
}

# ---- running -------------------------------------------------------------------------------------

wanted()
{
    local name=$1 one

    shift
    [ $# -eq 0 ] && return
    for one in "$@"; do
        [ "$one" = "$name" ] && return
    done
    return 1
}

# Adds the results of one file to ours, under our numbers.
collect()
{
    local name=$1 line text ran=0 planned='' status

    status=$(cat "$T/$name.status")
    while IFS= read -r line; do
        case $line in
        'ok '* | 'not ok '*)
            ran=$((ran + 1))
            TESTS=$((TESTS + 1))
            text=${line#*- }
            if [ "${line%% *}" = ok ]; then
                echo "ok $TESTS - $name: $text"
            else
                FAILED=$((FAILED + 1))
                echo "not ok $TESTS - $name: $text"
            fi
            ;;
        1..*) planned=${line#1..} ;;
        '#'*) printf '%s\n' "$line" ;;
        *) printf '# %s\n' "$line" ;;
        esac
    done <"$T/$name.tap"
    if [ "$planned" != "$ran" ] || [ "$status" -gt 1 ]; then
        TESTS=$((TESTS + 1))
        FAILED=$((FAILED + 1))
        echo "not ok $TESTS - $name: comes to its end"
        echo "# status $status, ${planned:-nothing} planned, $ran run"
    fi
}

# run_all NAME...: runs these, $JOBS_AT_ONCE at once, and tells their results in this order.
run_all()
{
    local name running=()

    for name in "$@"; do
        while [ "$(jobs -pr | grep -vcxF "$(printf '%s\n' "${SERVERS[@]}")")" -ge "$JOBS_AT_ONCE" ]; do
            sleep 0.05
        done
        { run_file "$name" >"$T/$name.tap" 2>&1; echo $? >"$T/$name.status"; } &
        running+=($!)
    done
    wait "${running[@]}"
    for name in "$@"; do
        collect "$name"
    done
}
