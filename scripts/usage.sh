# Sourced by the scripts beside it once they stand in the repository's folder.

# take_words WORDS ARGUMENT...: --help, or -h, prints the comment at the head of the script and ends it. An argument that is
# none of WORDS, and a second one, ends it as well, with 2. WORDS "*": the script looks at the others itself.
take_words() {
    local known=$1 script word
    script=scripts/$(basename "$0")
    shift
    for word in "$@"; do
        case "$word" in
        -h | --help)
            sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$script"
            exit 0
            ;;
        esac
    done
    [ "$known" != "*" ] || return 0
    for word in "$@"; do
        [[ " $known " == *" $word "* ]] || refuse "unknown argument '$word'"
    done
    [ $# -le 1 ] || refuse "takes one argument"
}

refuse() {
    echo "scripts/$(basename "$0"): $*; see scripts/$(basename "$0") --help" >&2
    exit 2
}
