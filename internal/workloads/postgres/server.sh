#!/bin/sh
# Starts the PostgreSQL of this folder in the foreground; the first time it is made. It listens on a unix socket here,
# and on the address that is given.
set -eu
umask 077
cd "$(dirname "$0")"
bin=
first=$(command -v postgres || :)
[ -z "$first" ] || first=$(dirname "$(readlink -f "$first")")
for folder in "${PLIMSOLL_POSTGRES:-}" "$first" $(ls -dr /usr/lib/postgresql/*/bin /usr/pgsql-*/bin \
	/usr/local/pgsql/bin 2>/dev/null | sort -Vr); do
	if [ -n "$folder" ] && [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ]; then bin=$folder; break; fi
done
if [ -z "$bin" ]; then
	echo "PostgreSQL is not installed here: initdb and postgres are neither in PATH nor where packages put them" >&2
	exit 127
fi
if [ "$1" = version ]; then exec "$bin/postgres" --version; fi
if [ "$(id -u)" = 0 ]; then # PostgreSQL refuses root
	for user in postgres nobody; do
		if id "$user" >/dev/null 2>&1; then
			chown -R "$user" .
			chmod o+x .. ../.. # the run's own
			drop="setpriv --reuid=$user --regid=$(id -g "$user") --clear-groups"
			$drop test -r "$PWD/server.sh" || {
				echo "user $user cannot enter $PWD: let others pass through the folders above it (chmod o+x)" >&2
				exit 1
			}
			exec $drop sh "$PWD/server.sh" "$@"
		fi
	done
	echo "there is neither a user postgres nor nobody to run PostgreSQL as, which refuses root" >&2
	exit 1
fi
if [ ! -f made ]; then
	rm -rf data
	if [ -n "${4:-}" ]; then # a copy of that server, which may still be in the making
		tries=0
		until PGPASSFILE="$PWD/.pgpass" "$bin/pg_basebackup" -h "$4" -p 5432 -U plimsoll -w -D data -R -X stream \
			-c fast >initdb.log 2>&1; do
			tries=$((tries + 1))
			[ "$tries" -lt 200 ] || { cat initdb.log >&2; exit 1; }
			rm -rf data
			sleep 0.3
		done
	else
		"$bin/initdb" -D data -U plimsoll -A reject -E UTF8 --locale=C --no-sync >initdb.log 2>&1 ||
			{ cat initdb.log >&2; exit 1; }
		cp pg_hba.conf data/pg_hba.conf
		cat settings.conf >>data/postgresql.conf
		"$bin/postgres" --single -D data -c synchronous_standby_names= postgres <first.sql >first.log 2>&1 ||
			{ cat first.log >&2; exit 1; }
		if grep -q ERROR first.log; then cat first.log >&2; exit 1; fi
	fi
	touch made
fi
if [ -n "${3:-}" ]; then
	has=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
	taskset -cp "$3" $$ >/dev/null 2>&1 || :
	got=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
	[ "$got" = "$3" ] || { echo "server: cpus: $3 are not all here: this machine gives $has" >&2; exit 1; }
fi
# The folder of the socket, seen from the data: its whole path may be longer than the 107 bytes that a socket can have.
# A standby that takes over has none to wait for.
exec "$bin/postgres" -D data -k .. -p 5432 -h "$1" ${4:+-c synchronous_standby_names=}
