# A folder without a repository: logs, tables, text, scripts.
set -eu
mkdir -p logs data/raw bin 'with space' src
for day in 1 2 3; do
  for n in 1 2 3 4 5 6; do
    level=INFO
    [ $((n % 3)) -eq 0 ] && level=ERROR
    printf '2026-02-0%s 10:0%s:00 %s request %s took %sms\n' "$day" "$n" "$level" "$n" "$((n * day * 7))"
  done > "logs/day$day.log"
done
printf 'name,team,points\nann,red,10\nbob,blue,7\ncid,red,4\ndee,blue,12\n' > data/scores.csv
printf '{"items": [{"id": 1, "name": "pen", "tags": ["a", "b"]}, {"id": 2, "name": "ink", "tags": []}], "total": 2}\n' > data/items.json
printf 'host=localhost\nport=8080\ndebug=false\n' > config.ini
printf 'b\na\nc\na\n' > data/raw/letters
printf 'spaced out\n' > 'with space/a file.txt'
printf '#!/bin/bash\nname=${1:-world}\necho "hello $name"\n' > bin/greet
printf '#!/bin/sh\nexit 3\n' > bin/three
chmod +x bin/greet bin/three
printf 'int main(void) { return 0; }\n' > src/main.c
printf '#include <stdio.h>\nint main(void) { puts("hi from c"); return 0; }\n' > src/hi.c
printf 'all: hi\n\nhi: src/hi.c\n\tcc -o hi src/hi.c\n\nclean:\n\trm -f hi\n' > Makefile
ln -s data/scores.csv latest.csv
printf 'Plan\n\n1. look\n2. think\n3. write\n' > PLAN.md
