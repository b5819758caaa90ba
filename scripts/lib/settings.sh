# shellcheck shell=bash
# Files of NAME=VALUE lines that a shell can source and only the owner can read.

# remember FILE NAME...: saves the values of the variables in the file.
remember() {
    local file=$1 name
    shift
    (
        umask 077
        [[ ! -e $file ]] || cp "$file" "$file.new"
        for name; do
            [[ ! -e $file.new ]] || sed -i "/^$name=/d" "$file.new"
            echo "$name=$(quoted "${!name}")" >>"$file.new"
        done
        mv "$file.new" "$file"
    )
}

# recall FILE: loads the variables if the file exists.
recall() {
    # shellcheck source=/dev/null
    [[ ! -e $1 ]] || . "$1"
}

# quoted VALUE: prints the value, in single quotes if the shell needs them.
quoted() {
    if [[ $1 =~ ^[A-Za-z0-9_.,:/@%+=-]*$ ]]; then
        printf %s "$1"
    else
        printf "'%s'" "${1//\'/\'\\\'\'}"
    fi
}
