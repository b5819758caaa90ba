#!/bin/sh
# usage: set-password.sh FILE USER <PASSWORD-FILE
# Sets the password of a user in a definitions file. It is read from standard input, because anyone on the
# machine can read command lines. In the checked-in file no user has a password, so no user can log in. The
# password must not need escaping in JSON: use hex.
set -eu

help() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; }
case ${1:-} in -h | --help)
    help
    exit
    ;;
esac
[ $# -eq 2 ] || {
    help >&2
    exit 2
}
file=$1 user=$2
IFS= read -r password || true
case $password in
    *[!A-Za-z0-9_-]* | '')
        echo "the password of $user must contain only letters, digits, _ and -" >&2
        exit 1
        ;;
esac
# The file may be formatted in any way, as long as the user's name is followed by the empty password_hash. RabbitMQ and
# Helm sort the keys, so it is.
found="(\"name\":[[:space:]]*\"$user\",[[:space:]]*)\"password_hash\":[[:space:]]*\"\""
grep -Eqz "$found" "$file" || {
    echo "$file has no user $user with an empty password_hash" >&2
    exit 1
}
sed -Ezi -f - "$file" <<END
s/$found/\1"password": "$password"/
END
