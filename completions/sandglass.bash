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
    --language | -l)
        _sandglass_words "python javascript typescript bash" "$cur"
        ;;
    --network)
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

_sandglass()
{
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local verbs="run doctor version help"

    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _sandglass_words "$verbs --help --version" "$cur"
        return
    fi
    case ${COMP_WORDS[1]} in
    run)
        _sandglass_run "$cur" "$prev"
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
