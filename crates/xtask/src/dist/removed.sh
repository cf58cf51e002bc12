# Follows installed.sh: nothing of the package is left.
set -eu
dpkg --purge onbeat
left=$(find / -xdev -name '*onbeat*' ! -path '/proc/*' ! -path '/onbeat.deb' ! -path '/tmp/*')
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
