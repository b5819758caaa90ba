# shellcheck shell=bash
# Files of NAME=VALUE lines that a shell can source and only their owner can read.

# remember FILE NAME...: writes the variables' present values into the file.
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

# recall FILE: reads it if it is there.
recall() {
    # shellcheck source=/dev/null
    [[ ! -e $1 ]] || . "$1"
}

# quoted VALUE: as it is when the shell would read it so, in single quotes otherwise.
quoted() {
    if [[ $1 =~ ^[A-Za-z0-9_.,:/@%+=-]*$ ]]; then
        printf %s "$1"
    else
        printf "'%s'" "${1//\'/\'\\\'\'}"
    fi
}
