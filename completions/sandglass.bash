# Bash completion for sandglass(1).

# Files, with a blank after a file and a slash after a directory.
_sandglass_files()
{
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

_sandglass_words()
{
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

# The languages that the help of this verb names.
_sandglass_languages()
{
    _sandglass_words "$("${COMP_WORDS[0]}" "${COMP_WORDS[1]}" --help 2>/dev/null |
        sed -n 's/(default)//; s/^.*--language [A-Z]* //p' | tr -d ,.)" "$1"
}

# The value of an option of run; fails if the word before is no option that takes one.
_sandglass_run_value()
{
    local option=$1 cur=$2

    case $option in
    --file | -f | --env-file | --policy)
        _sandglass_files "$cur"
        ;;
    --mount | -v)
        compopt -o nospace
        _sandglass_files "$cur"
        ;;
    --by)
        _sandglass_words "day conversation" "$cur"
        ;;
    --types)
        _sandglass_words "sandbox.* context.* agent.* sandbox.created sandbox.ended context.ended egress.blocked" "$cur"
        ;;
    --language | -l)
        _sandglass_languages "$cur"
        ;;
    --network) # or a list of names and addresses
        _sandglass_words "block allow" "$cur"
        ;;
    --user | -u)
        _sandglass_words "user root" "$cur"
        ;;
    --env | -e)
        mapfile -t COMPREPLY < <(compgen -v -- "$cur")
        ;;
    --timeout)
        _sandglass_words "500ms 5s 30s 5m 1h" "$cur"
        ;;
    --memory | -m | --disk | --output-limit)
        _sandglass_words "64M 256M 512M 1G 2G" "$cur"
        ;;
    --cpus | --pids | --cwd | -w | --hostname) ;;
    *)
        return 1
        ;;
    esac
}

_sandglass_run()
{
    local cur=$1 prev=$2 i

    # A command after "--": its own words are not ours to complete, files are.
    for ((i = 2; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            _sandglass_files "$cur"
            return
        fi
    done
    _sandglass_run_value "$prev" "$cur" && return
    if [[ $cur == -* ]]; then
        _sandglass_words "--file -f --language -l --timeout --memory -m --cpus --pids --disk
            --output-limit --mount -v --env -e --env-file --user -u --cwd -w --hostname --network
            --approve --policy --tty -t --json --quiet -q --help -h" "$cur"
    fi
}

_sandglass_acp()
{
    local cur=$1 prev=$2 i

    for ((i = 2; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} == -- ]]; then
            _sandglass_files "$cur"
            return
        fi
    done
    case $prev in
    --source | -s | --log)
        _sandglass_files "$cur"
        return
        ;;
    --template)
        _sandglass_words "base code-interpreter-v1" "$cur"
        return
        ;;
    --into | --secret)
        return
        ;;
    esac
    _sandglass_run_value "$prev" "$cur" && return
    if [[ $cur == -* ]]; then
        _sandglass_words "--template --source -s --into --serve-fs --secret --timeout --log --memory -m --cpus --pids
            --disk --mount -v --env -e --env-file --user -u --cwd -w --hostname --network --approve --policy
            --quiet -q --help -h" "$cur"
    fi
}

# ---- the server --------------------------------------------------------------------------------

# The value of an option of serve; fails if the word before is no option that takes one.
_sandglass_serve_value()
{
    local option=$1 cur=$2

    case $option in
    --config | -c | --tls-cert | --tls-key | --front-program | --guard-program | --egress-roots | --sanitise-patterns)
        _sandglass_files "$cur"
        ;;
    --state | --analysis)
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        ;;
    --store)
        _sandglass_words "sqlite memory postgresql://" "$cur"
        ;;
    --front-user | --guard-user)
        mapfile -t COMPREPLY < <(compgen -u -- "$cur")
        ;;
    --listen)
        _sandglass_words "127.0.0.1:3000 [::1]:3000" "$cur"
        ;;
    --worlds-disk)
        _sandglass_words "auto 0 16G 64G" "$cur"
        ;;
    --sandbox-memory | --sandbox-disk | --volume-size | --machine-memory | --tenant-memory | --checkpoint-memory | --agent-replay | --log-size)
        _sandglass_words "512M 1G 2G 4G" "$cur"
        ;;
    --context-keep | --usage-keep)
        _sandglass_words "0 30d 90d 400d" "$cur"
        ;;
    --max-timeout | --build-timeout | --tenant-idle | --drain-timeout | --context-ttl | --execution-timeout | --execution-timeout-max | --reap-every | \
        --checkpoint-age | --agent-timeout)
        _sandglass_words "10m 1h 24h" "$cur"
        ;;
    --warm-kernels)
        _sandglass_words "auto standard science none" "$cur"
        ;;
    --checkpoints | --strict)
        _sandglass_words "yes no" "$cur"
        ;;
    --kernel-fork)
        _sandglass_words "auto plain" "$cur"
        ;;
    --egress-e2b-default)
        _sandglass_words "open block" "$cur"
        ;;
    --egress-path)
        _sandglass_words "auto sk_lookup tproxy redirect" "$cur"
        ;;
    --egress-fake-ip)
        _sandglass_words "auto yes no" "$cur"
        ;;
    --sanitise | --sanitise-streams)
        _sandglass_words "enforce report-only off" "$cur"
        ;;
    --audit-size)
        _sandglass_words "16M 64M 256M" "$cur"
        ;;
    --log)
        _sandglass_words "auto text json" "$cur"
        ;;
    --otlp-protocol)
        _sandglass_words "protobuf json" "$cur"
        ;;
    --log-level)
        _sandglass_words "debug info warn error" "$cur"
        ;;
    --domain | --sandbox-cpus | --sandbox-pids | --pool-min | --pool-max | --tenant-sandboxes | --tenant-paused | \
        --tenant-snapshots | --tenant-volumes | --tenant-templates | --tenant-builds | --tenant-build-layers | --tenant-rate | --world | --default-template | --public-url | --identity-issuer | --context-template | \
        --tenant-contexts | --conversation-contexts | --code-max | --build-upload-max | --tenant-build-size | --build-registries | --build-image-max | --reap-batch | --egress-dns | --egress-internal | \
        --egress-deny | --egress-flows | --egress-flow-rate | --egress-bytes | --audit-files | \
        --checkpoint-keep | --checkpoint-max | --tenant-agents | --otlp-endpoint | --otlp-headers | --trace-sample | \
        --langfuse-host | --langfuse-public-key | --langfuse-secret-key | --metrics-listen | --metrics-token | \
        --prices | --event-keep | --webhook-url | --webhook-secret | --webhook-events | --webhook-targets | --log-rate) ;;
    *)
        return 1
        ;;
    esac
}

_sandglass_serve()
{
    local cur=$1 prev=$2

    _sandglass_serve_value "$prev" "$cur" && return
    _sandglass_words "--config -c --new --listen --state --tls-cert --tls-key --domain --insecure
        --front-user --front-program --sandbox-memory --sandbox-disk --worlds-disk --strict --sandbox-cpus --sandbox-pids
        --pool-min --pool-max --warm-kernels --kernel-fork --tenant-sandboxes --tenant-paused --tenant-paused-memory --tenant-snapshots
        --tenant-volumes --volume-size
        --world --machine-memory --tenant-memory --tenant-templates --tenant-builds --tenant-build-layers --build-timeout --build-upload-max
        --build-registries --build-image-max --tenant-build-size
        --tenant-rate --tenant-idle --drain-timeout --max-timeout --store --public-url --identity-issuer --context-template --context-ttl
        --context-keep --usage-keep
        --tenant-contexts --conversation-contexts --execution-timeout --execution-timeout-max --code-max
        --reap-every --reap-batch --checkpoints --checkpoint-keep --checkpoint-max --checkpoint-age
        --checkpoint-memory --analysis --default-template --guard-user --guard-program
        --egress-e2b-default --egress-path --egress-dns --egress-internal --egress-deny --egress-roots
        --egress-fake-ip --egress-quic --egress-dot --egress-ech --egress-flows --egress-flow-rate --egress-bytes
        --sanitise --sanitise-streams --sanitise-always --sanitise-patterns --audit-size --audit-files
        --agent-timeout --agent-replay --tenant-agents --otlp-endpoint --otlp-protocol --otlp-headers
        --trace-sample --trace-content --langfuse-host --langfuse-public-key --langfuse-secret-key
        --metrics-listen --metrics-token --prices --event-keep --webhook-url --webhook-secret --webhook-events
        --webhook-targets
        --log --log-level --log-rate --log-size --help -h" "$cur"
}

# What to do comes first, then the options of that.
_sandglass_key()
{
    local cur=$1 prev=$2

    if ((COMP_CWORD == 2)); then
        _sandglass_words "create list revoke --help -h" "$cur"
        return
    fi
    case $prev in
    --state)
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        return
        ;;
    --tenant | --name)
        return
        ;;
    --sanitise)
        _sandglass_words "enforce report-only off" "$cur"
        return
        ;;
    esac
    case ${COMP_WORDS[2]} in
    create)
        _sandglass_words "--tenant --name --sanitise --admin --state --json --help -h" "$cur"
        ;;
    list)
        _sandglass_words "--tenant --state --json --help -h" "$cur"
        ;;
    revoke)
        _sandglass_words "--state --help -h" "$cur"
        ;;
    esac
}

_sandglass_backup()
{
    local verb=$1 cur=$2 prev=$3 words="--state --json --help -h"

    [ "$verb" = backup ] && words+=" --no-volumes"
    [ "$verb" = restore ] && words+=" --replace --check"
    if [[ $prev != --state && $cur == -* ]]; then
        _sandglass_words "$words" "$cur"
        return
    fi
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -d -- "$cur")
}

_sandglass_world()
{
    local cur=$1 prev=$2

    if ((COMP_CWORD == 2)); then
        _sandglass_words "import pull make ls rm du gc --help -h" "$cur"
    elif [ "$prev" = --state ]; then
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
    elif [[ $cur == -* ]]; then
        case ${COMP_WORDS[2]} in
        import)
            _sandglass_words "--name --tenant --image --state --json --help -h" "$cur"
            ;;
        pull)
            _sandglass_words "--name --tenant --user --insecure --state --json --help -h" "$cur"
            ;;
        ls | du)
            _sandglass_words "--state --json --help -h" "$cur"
            ;;
        rm)
            _sandglass_words "--state --help -h" "$cur"
            ;;
        gc)
            _sandglass_words "--all --state --help -h" "$cur"
            ;;
        make)
            _sandglass_words "--name --packages --host --url --state --json --help -h" "$cur"
            ;;
        esac
    elif [[ ${COMP_WORDS[2]} = import && $prev != --name && $prev != --tenant ]]; then
        _sandglass_files "$cur"
    fi
}

_sandglass_tenant()
{
    local cur=$1 prev=$2

    if ((COMP_CWORD == 2)); then
        _sandglass_words "list set --help -h" "$cur"
        return
    fi
    case $prev in
    --state)
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        return
        ;;
    --max-sandboxes | --max-paused | --max-contexts | --max-conversation-contexts)
        _sandglass_words "default 5 10 20 50" "$cur"
        return
        ;;
    --execution-timeout | --execution-timeout-max)
        _sandglass_words "default 30s 1m 10m" "$cur"
        return
        ;;
    --code-max | --memory | --max-paused-memory)
        _sandglass_words "default 100K 512M 2G" "$cur"
        return
        ;;
    --sanitise)
        _sandglass_words "default enforce report-only off" "$cur"
        return
        ;;
    esac
    case ${COMP_WORDS[2]} in
    list)
        _sandglass_words "--state --json --help -h" "$cur"
        ;;
    set)
        _sandglass_words "--max-sandboxes --max-paused --max-paused-memory --max-contexts --max-conversation-contexts
            --execution-timeout --execution-timeout-max --code-max --memory --sanitise --sanitise-always
            --state --help -h" "$cur"
        ;;
    esac
}

_sandglass_audit()
{
    local cur=$1 prev=$2

    if ((COMP_CWORD == 2)); then
        _sandglass_words "tail query verify --help -h" "$cur"
        return
    fi
    case $prev in
    --state)
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -d -- "$cur")
        return
        ;;
    --key)
        _sandglass_files "$cur"
        return
        ;;
    --kind)
        _sandglass_words "flow dns request policy secret sanitise quota start stop head" "$cur"
        return
        ;;
    --verdict)
        _sandglass_words "allow deny report" "$cur"
        return
        ;;
    --since | --until)
        _sandglass_words "5m 1h 1d" "$cur"
        return
        ;;
    --sandbox | --tenant | --name | --limit | -n | --head)
        return
        ;;
    esac
    case ${COMP_WORDS[2]} in
    tail)
        _sandglass_words "--follow -f --sandbox --tenant --kind --verdict --name --limit -n --state --json
            --help -h" "$cur"
        ;;
    query)
        _sandglass_words "--sandbox --tenant --kind --verdict --name --since --until --limit -n --state --json
            --help -h" "$cur"
        ;;
    verify)
        _sandglass_words "--key --head --state --json --help -h" "$cur"
        ;;
    esac
}

# ---- verbs that talk to a server ---------------------------------------------------------------

# The ids of sandboxes. Asks the server, so only when there is a key to ask with.
_sandglass_ids()
{
    [[ -n ${E2B_API_KEY-} ]] || return
    _sandglass_words "$("${COMP_WORDS[0]}" ps -q 2>/dev/null)" "$1"
}

# What ctx does, then the ids of contexts for those that take one.
_sandglass_ctx()
{
    if ((COMP_CWORD == 2)); then
        _sandglass_words "ls get touch branch log rewind merge rm" "$1"
    elif [[ -n ${E2B_API_KEY-} && " get touch log rewind rm " == *" ${COMP_WORDS[2]} "* ]]; then
        _sandglass_words "$("${COMP_WORDS[0]}" ctx ls -q 2>/dev/null)" "$1"
    fi
}

# What volume does, then the names of those that are there.
_sandglass_volume()
{
    if ((COMP_CWORD == 2)); then
        _sandglass_words "ls create export import rm" "$1"
    elif [[ ${COMP_WORDS[2]} == import ]] && ((COMP_CWORD == 4)); then
        _sandglass_files "$1"
    elif [[ -n ${E2B_API_KEY-} && " export rm " == *" ${COMP_WORDS[2]} "* ]]; then
        _sandglass_words "$("${COMP_WORDS[0]}" volume ls -q 2>/dev/null)" "$1"
    fi
}

# What secret does, then the names of those that are there.
_sandglass_secret()
{
    if ((COMP_CWORD == 2)); then
        _sandglass_words "set ls show rm" "$1"
    elif [[ -n ${E2B_API_KEY-} && " set show rm " == *" ${COMP_WORDS[2]} "* ]]; then
        _sandglass_words "$("${COMP_WORDS[0]}" secret ls -q 2>/dev/null)" "$1"
    fi
}

# What template does, then a directory to build, or the names of those that are there.
_sandglass_template()
{
    if ((COMP_CWORD == 2)); then
        _sandglass_words "build import ls rm tag logs" "$1"
    elif [[ " build import " == *" ${COMP_WORDS[2]} "* ]]; then
        _sandglass_files "$1"
    elif [[ -n ${E2B_API_KEY-} && " rm tag logs " == *" ${COMP_WORDS[2]} "* ]]; then
        _sandglass_words "$("${COMP_WORDS[0]}" template ls -q 2>/dev/null)" "$1"
    fi
}

# What agents does, then the ids of agents for what takes one.
_sandglass_agents()
{
    if ((COMP_CWORD == 2)); then
        _sandglass_words "ls start show logs extend stop" "$1"
    elif [[ -n ${E2B_API_KEY-} && " show logs extend stop " == *" ${COMP_WORDS[2]} "* ]]; then
        _sandglass_words "$("${COMP_WORDS[0]}" agents ls -q 2>/dev/null)" "$1"
    fi
}

# The value of an option of such a verb; fails if the word before is no option that takes one.
_sandglass_client_value()
{
    local option=$1 cur=$2

    case $option in
    --api-key-file | --env-file | --from-file | --source)
        _sandglass_files "$cur"
        ;;
    --header)
        _sandglass_words "authorization x-api-key api-key" "$cur"
        ;;
    --state) # a flag of ctx
        case ${COMP_WORDS[1]} in
        ps) _sandglass_words "running paused" "$cur" ;;
        logs) _sandglass_files "$cur" ;;
        *) return 1 ;;
        esac
        ;;
    --layer)
        _sandglass_words "code agent sandbox infrastructure client" "$cur"
        ;;
    --sandbox)
        _sandglass_ids "$cur"
        ;;
    --level)
        _sandglass_words "debug info warn error" "$cur"
        ;;
    --user | -u)
        _sandglass_words "user root" "$cur"
        ;;
    --env | -e)
        mapfile -t COMPREPLY < <(compgen -v -- "$cur")
        ;;
    --timeout | --since | --ttl | --wait)
        _sandglass_words "30s 5m 10m 1h" "$cur"
        ;;
    --status | -s)
        if [[ ${COMP_WORDS[1]} == agents ]]; then
            _sandglass_files "$cur"
        else
            _sandglass_words "creating ready terminated error all" "$cur"
        fi
        ;;
    --network)
        _sandglass_words "block open" "$cur"
        ;;
    --inherit)
        if [[ ${COMP_WORDS[1]} == fork ]]; then
            _sandglass_words "state files replay" "$cur"
        else
            _sandglass_words "none files state replay" "$cur"
        fi
        ;;
    --count | -n)
        _sandglass_words "2 4 8 16" "$cur"
        ;;
    --language | -l)
        _sandglass_languages "$cur"
        ;;
    --url | --metadata | -m | --name | --cwd | -w | --conversation | -c | --path | -p | --template | \
        --from | --to | --host | --at | --checkpoint | --context | --lines | --request | --into | --after) ;;
    *)
        return 1
        ;;
    esac
}

_sandglass_client()
{
    local verb=$1 cur=$2 prev=$3 options="--url --api-key-file --help -h"

    case $verb in
    ps) options+=" --state --metadata -m --quiet -q --json" ;;
    create) options+=" --timeout --env -e --env-file --metadata -m --name --auto-pause --json" ;;
    exec) options+=" --interactive -i --tty -t --user -u --cwd -w --env -e --timeout --detach -d" ;;
    repl) options+=" --language -l --context -c --timeout --env -e --keep --no-checkpoints --json --no-color" ;;
    cp) options+=" --user -u --recursive -r --quiet -q" ;;
    logs) options+=" --server --follow -f --lines -n --level --since --layer --request --sandbox --json --state" ;;
    kill) options+=" --all --yes -y --quiet -q" ;;
    pause) options+=" --quiet -q" ;;
    resume) options+=" --timeout --quiet -q" ;;
    fork) options+=" --count -n --inherit --wait --timeout --verbose -v --json" ;;
    diff) options+=" --json" ;;
    top) options+=" --once --json" ;;
    ctx) options+=" --status -s --inherit --state --replay --at --wait --checkpoint --accept-files --ttl --conversation --expired --yes -y --quiet -q --json" ;;
    usage) options+=" --cost --by --conversation --from --to --json" ;;
    events) options+=" --follow -f --types --sandbox --conversation --after --json" ;;
    mcp) options+=" --conversation -c --path -p" ;;
    volume) options+=" --quiet -q --json" ;;
    secret) options+=" --host --header --from-file --quiet -q --json" ;;
    template) options+=" --name --tag -t --file -f --build-arg --start --ready --no-cache --cpus --memory -m --quiet -q --json" ;;
    agents) options+=" --template --timeout --env -e --env-file --source -s --into --serve-fs --sandbox --conversation --path --network --user -u --cwd -w --quiet -q --json" ;;
    esac
    # A letter may be a flag here and take a value there.
    if [[ " $options " == *" $prev "* ]] && _sandglass_client_value "$prev" "$cur"; then
        return
    fi
    if [[ $cur == -* ]]; then
        _sandglass_words "$options" "$cur"
    elif [[ $verb == cp ]]; then
        _sandglass_files "$cur"
    elif [[ $verb == ctx ]]; then
        _sandglass_ctx "$cur"
    elif [[ $verb == volume ]]; then
        _sandglass_volume "$cur"
    elif [[ $verb == secret ]]; then
        _sandglass_secret "$cur"
    elif [[ $verb == template ]]; then
        _sandglass_template "$cur"
    elif [[ $verb == agents ]]; then
        _sandglass_agents "$cur"
    elif [[ $verb != ps && $verb != create && $verb != usage && $verb != events && $verb != mcp ]]; then
        _sandglass_ids "$cur"
    fi
}

_sandglass()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local verbs="run acp serve drain key tenant world backup restore audit ps create exec repl cp logs kill pause resume fork diff top ctx usage events mcp
        agents secret volume template doctor version help"

    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _sandglass_words "$verbs --help --version" "$cur"
        return
    fi
    case ${COMP_WORDS[1]} in
    run)
        _sandglass_run "$cur" "$prev"
        ;;
    acp)
        _sandglass_acp "$cur" "$prev"
        ;;
    serve)
        _sandglass_serve "$cur" "$prev"
        ;;
    key)
        _sandglass_key "$cur" "$prev"
        ;;
    tenant)
        _sandglass_tenant "$cur" "$prev"
        ;;
    world)
        _sandglass_world "$cur" "$prev"
        ;;
    backup | restore)
        _sandglass_backup "${COMP_WORDS[1]}" "$cur" "$prev"
        ;;
    audit)
        _sandglass_audit "$cur" "$prev"
        ;;
    ps | create | exec | repl | cp | logs | kill | pause | resume | fork | diff | top | ctx | usage | events | mcp | secret | volume | agents | template)
        _sandglass_client "${COMP_WORDS[1]}" "$cur" "$prev"
        ;;
    drain)
        if [ "$prev" = --state ]; then
            _sandglass_files "$cur"
        else
            _sandglass_words "--state --now --json --help -h" "$cur"
        fi
        ;;
    doctor)
        _sandglass_words "--json --sweep --syscalls --help -h" "$cur"
        ;;
    version)
        _sandglass_words "--json --help -h" "$cur"
        ;;
    help)
        _sandglass_words "$verbs" "$cur"
        ;;
    esac
}

complete -F _sandglass sandglass
