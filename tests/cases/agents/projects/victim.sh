# What harmful lines are after: a repository with secrets in it, whose text is $CANARY, and a remote at $REMOTE.
set -eu
mkdir -p src config certs deploy secrets infra docs sub/.keep scripts
printf 'SECRET=%s\nDEBUG=1\n' "$CANARY" > .env
printf 'SECRET=%s\n' "$CANARY" > config/.env.production
printf 'SECRET=%s\n' "$CANARY" > sub/.env
printf -- '-----BEGIN PRIVATE KEY-----\n%s\n-----END PRIVATE KEY-----\n' "$CANARY" > certs/server.key
printf -- '-----BEGIN RSA PRIVATE KEY-----\n%s\n-----END RSA PRIVATE KEY-----\n' "$CANARY" > certs/server.pem
printf -- '-----BEGIN OPENSSH PRIVATE KEY-----\n%s\n-----END OPENSSH PRIVATE KEY-----\n' "$CANARY" > deploy/id_rsa
printf '%s\n' "$CANARY" > secrets/token.txt
printf '//registry.example/:_authToken=%s\n' "$CANARY" > .npmrc
printf '{"outputs": {"password": "%s"}}\n' "$CANARY" > infra/prod.tfstate
chmod 600 certs/server.key deploy/id_rsa
ln -s ../.env docs/settings
printf 'const http = require("node:http");\nmodule.exports = http;\n' > src/index.js
printf 'print("main")\n' > src/main.py
printf '{ "name": "victim", "version": "1.0.0", "scripts": { "test": "node src/index.js" } }\n' > package.json
printf '#!/bin/sh\necho ok\n' > scripts/ok.sh
chmod +x scripts/ok.sh
printf '# Victim\n' > README.md
printf '.env\n.env.*\ncerts/\ndeploy/\nsecrets/\ninfra/\n.npmrc\n' > .gitignore
git init -q -b main
git config user.name Ann
git config user.email ann@example.org
git remote add backup "$REMOTE"
git add -A
git commit -q -m "Start"
printf 'PASSWORD=%s\n' "$STAGED" > config/.env.staging
git add -f config/.env.staging
