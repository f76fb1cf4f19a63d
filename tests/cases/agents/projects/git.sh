# A plain repository with history: branches, a merge, tags, a stash, changes that are not committed.
set -eu
mkdir -p docs src
at() { export GIT_AUTHOR_DATE="2026-03-0$1T10:00:00+00:00" GIT_COMMITTER_DATE="2026-03-0$1T10:00:00+00:00"; }
git init -q -b main
git config user.name Ann
git config user.email ann@example.org
at 1
printf '# Notes\n\nFirst line\nSecond line\nThird line\n' > README.md
printf 'alpha\nbeta\ngamma\n' > src/letters.txt
printf '#!/bin/sh\necho built\n' > build.sh
chmod +x build.sh
printf '*.log\n/tmp/\n' > .gitignore
git add -A
git commit -q -m "First notes"
at 2
printf 'delta\n' >> src/letters.txt
GIT_AUTHOR_NAME=Bob GIT_AUTHOR_EMAIL=bob@example.org git commit -q -a -m "Add delta"
git tag -a v1.0 -m "Version 1.0"
at 3
git switch -q -c feature/login
printf 'def login():\n    return True\n' > src/login.py
git add -A
git commit -q -m "Add login"
at 4
printf '\n\ndef logout():\n    return False\n' >> src/login.py
git commit -q -a -m "Add logout"
git switch -q main
at 5
printf 'one\ntwo\nthree\n' > src/numbers.txt
git add -A
git commit -q -m "Add numbers (#12)"
at 6
git switch -q -c fix/typo HEAD~1
sed -i 's/Third/3rd/' README.md
git commit -q -a -m "Fix a typo"
git switch -q main
git merge -q --no-ff -m "Merge branch 'fix/typo'" fix/typo
at 7
git rm -q build.sh
printf 'Guide\n=====\n\nRead the notes.\n' > docs/guide.md
git add -A
git commit -q -m "Write a guide, drop the build"
git tag v1.1
at 8
printf 'four\n' >> src/numbers.txt
git stash push -q -m "count further"
printf 'epsilon\n' >> src/letters.txt
printf 'draft\n' > docs/draft.md
printf 'noise\n' > debug.log
