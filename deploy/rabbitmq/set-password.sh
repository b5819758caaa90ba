#!/bin/sh
# usage: set-password.sh FILE USER <PASSWORD-FILE
# Gives a user of a definitions file its password, which is read from standard input: a command line can
# be read by anyone on the machine. In the file as it is checked in no user has one, so nobody can log in
# with what is public. The password must not need escaping in JSON: use hex.
set -eu
file=$1 user=$2
IFS= read -r password || true
case $password in
    *[!A-Za-z0-9_-]* | '')
        echo "the password of $user must be letters and digits" >&2
        exit 1
        ;;
esac
grep -q "\"name\": \"$user\", \"password_hash\": \"\"" "$file" || {
    echo "$file has no user $user without a password" >&2
    exit 1
}
sed -i -f - "$file" <<END
s/"name": "$user", "password_hash": ""/"name": "$user", "password": "$password"/
END
