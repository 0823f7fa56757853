#
# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# The command line of a script of test or bench; to be sourced by bash.

# usage: what the script's head says, unless the script has its own
declare -F usage > /dev/null || usage() {
    awk 'NR > 1 && !/^#/ { exit }
         NR > 1 && !/Copyright/ { sub(/^# ?/, ""); if (text += NF) print }' "$0"
}

# take_options SPEC ARGUMENTS...: as variables. SPEC has one a word: `name=default` takes a
# value, `name:default` a folder, of which the absolute path is kept, `name+` a value
# each time that it is given, and `name!` none: it is 1 or empty. The variable of --a-b
# is a_b. What stands behind -- is in options_rest, and the names that were given are in
# options_given. --help calls usage().
take_options() {
    local _spec=" ${1//$'\n'/ } " _word _name
    shift
    for _word in $_spec; do
        _name=${_word%%[=:+!]*}
        _word=${_word#"$_name"}
        printf -v "${_name//-/_}" %s "${_word#[=:+!]}"
    done
    options_rest=() options_given=' '
    while [ $# -gt 0 ]; do
        case $1 in
        --help|-h) usage; exit 0 ;;
        --) options_rest=("${@:2}"); return ;;
        --*) _word=${1#--} _name=${1#--} ;;
        *) usage >&2; exit 2 ;;
        esac
        _name=${_name//-/_}
        options_given+="$_word "
        if [[ $_spec == *" $_word! "* ]]; then
            printf -v "$_name" 1
            shift
            continue
        fi
        [[ $_spec == *" $_word"[=:+]* ]] || { usage >&2; exit 2; }
        [ $# -ge 2 ] || { echo "${0##*/}: $1 needs a value" >&2; exit 2; }
        case $_spec in
        *" $_word="*) printf -v "$_name" %s "$2" ;;
        *" $_word+"*) printf -v "$_name" %s "${!_name:+${!_name} }$2" ;;
        *) _word=$(cd "$2" && pwd) || exit 2
           printf -v "$_name" %s "$_word" ;;
        esac
        shift 2
    done
}
