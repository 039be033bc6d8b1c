# Shared by the scripts beside it: where things are, how they speak. Sourced, not run.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
script=$(basename "$0")

say() { printf '%s: %s\n' "$script" "$*" >&2; }
die() {
  say "$*"
  exit 1
}
usage_error() {
  say "$*"
  say "try: scripts/$script --help"
  exit 2
}
# The comment at the top of the script that was called, without its first line.
print_help() { awk 'NR > 1 && /^#/ { sub(/^# ?/, ""); print; next } NR > 1 { exit }' "$0"; }

# Sources under our own rules: everything but the golden data.
own_sources() {
  git -C "$root" ls-files -co --exclude-standard -- '*.cpp' '*.hpp' '*.c' '*.h' | grep -v '^tests/fixtures/' |
    while read -r file; do if [ -f "$root/$file" ]; then printf '%s\n' "$file"; fi; done
}
