# A small shop in Node: TypeScript sources, tools in node_modules/.bin, a `.env`, a repository.
set -eu
mkdir -p src test scripts docs node_modules/.bin node_modules/typescript/bin node_modules/eslint/bin \
  node_modules/prettier/bin node_modules/vitest/bin node_modules/tiny-ms
cat > package.json <<'EOF'
{
  "name": "shop",
  "version": "1.2.0",
  "private": true,
  "scripts": {
    "build": "tsc -p .",
    "test": "node --test test",
    "lint": "eslint src",
    "format": "prettier --write src",
    "typecheck": "tsc --noEmit",
    "start": "node dist/server.js",
    "hello": "node -e \"console.log('hello from npm')\""
  },
  "dependencies": {
    "tiny-ms": "^2.0.0"
  },
  "devDependencies": {
    "eslint": "^9.0.0",
    "prettier": "^3.0.0",
    "typescript": "^5.0.0",
    "vitest": "^2.0.0"
  }
}
EOF
cat > package-lock.json <<'EOF'
{
  "name": "shop",
  "version": "1.2.0",
  "lockfileVersion": 3,
  "requires": true,
  "packages": {
    "": { "name": "shop", "version": "1.2.0", "dependencies": { "tiny-ms": "^2.0.0" } },
    "node_modules/tiny-ms": { "version": "2.0.1" }
  }
}
EOF
cat > tsconfig.json <<'EOF'
{
  "compilerOptions": { "target": "ES2022", "module": "commonjs", "outDir": "dist", "strict": true },
  "include": ["src"]
}
EOF
cat > src/cart.ts <<'EOF'
// The cart: what is in it and what it costs.
export function total(prices: number[]): number {
  return prices.reduce((sum, price) => sum + price, 0);
}

export function discount(price: number, percent: number): number {
  // TODO: round half to even
  return Math.round(price * (100 - percent)) / 100;
}
EOF
cat > src/server.ts <<'EOF'
const http = require('node:http');
const { total } = require('./cart');

const port = Number(process.env.PORT || 3000);
http.createServer((request, response) => {
  if (request.url === '/health') return response.end('ok\n');
  if (request.url === '/total') return response.end(`${total([1, 2, 3])}\n`);
  response.statusCode = 404;
  response.end('not found\n');
}).listen(port, '127.0.0.1');
EOF
cat > src/legacy.js <<'EOF'
var counter = 0;
function next() {
  counter += 1;
  return counter;
}
// TODO: remove with the old checkout
module.exports = { next };
EOF
cat > test/cart.test.js <<'EOF'
const test = require('node:test');
const assert = require('node:assert');
const { total, discount } = require('../dist/cart');

test('total adds up', () => assert.equal(total([1, 2, 3]), 6));
test('discount takes percent off', () => assert.equal(discount(50, 10), 45));
EOF
cat > test/legacy.test.js <<'EOF'
const test = require('node:test');
const assert = require('node:assert');
const { next } = require('../src/legacy');

test('next counts', () => assert.equal(next(), 1));
EOF
cat > scripts/release.sh <<'EOF'
#!/bin/bash
set -euo pipefail
version=$(node -p "require('./package.json').version")
echo "releasing $version"
mkdir -p dist
echo "$version" > dist/VERSION
EOF
cat > scripts/count.js <<'EOF'
const fs = require('node:fs');
let lines = 0;
for (const name of fs.readdirSync('src').sort()) {
  const count = fs.readFileSync(`src/${name}`, 'utf8').split('\n').length - 1;
  lines += count;
  console.log(`${name}: ${count}`);
}
console.log(`all: ${lines}`);
EOF
chmod +x scripts/release.sh
printf '# Shop\n\nA cart and a server.\n\n## Use\n\n    npm run build\n    npm start\n' > README.md
printf '# API\n\n- GET /health\n- GET /total\n' > docs/api.md
printf 'node_modules/\ndist/\n.env\n*.log\n' > .gitignore
printf 'DATABASE_URL=postgres://shop:hunter2@db/shop\n' > .env
printf 'DATABASE_URL=postgres://user:password@host/name\n' > .env.example

# What npm would have installed: no registry is asked.
printf '{ "name": "tiny-ms", "version": "2.0.1", "main": "index.js" }\n' > node_modules/tiny-ms/package.json
printf 'module.exports = (text) => Number.parseInt(text, 10) * 1000;\n' > node_modules/tiny-ms/index.js
for name in typescript:tsc:5.0.0 eslint:eslint:9.0.0 prettier:prettier:3.0.0 vitest:vitest:2.0.0; do
  IFS=: read -r package program version <<< "$name"
  printf '{ "name": "%s", "version": "%s", "bin": { "%s": "bin/%s" } }\n' \
    "$package" "$version" "$program" "$program" > "node_modules/$package/package.json"
done
cat > node_modules/typescript/bin/tsc <<'EOF'
#!/usr/bin/env node
// Stands in for the TypeScript compiler: removes the few types that this project has.
const fs = require('node:fs');
const args = process.argv.slice(2);
if (args.includes('--version')) { console.log('Version 5.0.0'); process.exit(0); }
let errors = 0;
if (!args.includes('--noEmit')) fs.mkdirSync('dist', { recursive: true });
for (const name of fs.readdirSync('src').filter((one) => one.endsWith('.ts')).sort()) {
  const text = fs.readFileSync(`src/${name}`, 'utf8');
  text.split('\n').forEach((line, at) => {
    if (!/: number = '/.test(line)) return;
    console.log(`src/${name}(${at + 1},1): error TS2322: Type 'string' is not assignable to type 'number'.`);
    errors += 1;
  });
  const exported = [];
  const plain = text
    .replace(/export function (\w+)/g, (_, one) => { exported.push(one); return `function ${one}`; })
    .replace(/: (number|string|boolean)(\[\])?/g, '');
  const tail = exported.map((one) => `exports.${one} = ${one};\n`).join('');
  if (!args.includes('--noEmit')) fs.writeFileSync(`dist/${name.replace(/\.ts$/, '.js')}`, plain + tail);
}
process.exit(errors ? 2 : 0);
EOF
cat > node_modules/eslint/bin/eslint <<'EOF'
#!/usr/bin/env node
// Stands in for a linter: it knows `no-var`.
const fs = require('node:fs');
const fix = process.argv.includes('--fix');
let errors = 0;
for (const name of fs.readdirSync('src').sort()) {
  const text = fs.readFileSync(`src/${name}`, 'utf8');
  if (fix) { fs.writeFileSync(`src/${name}`, text.replace(/^var /gm, 'let ')); continue; }
  text.split('\n').forEach((line, at) => {
    if (!line.startsWith('var ')) return;
    console.log(`src/${name}:${at + 1}:1: error Unexpected var, use let or const instead (no-var)`);
    errors += 1;
  });
}
if (errors) console.log(`${errors} problem`);
process.exit(errors ? 1 : 0);
EOF
cat > node_modules/prettier/bin/prettier <<'EOF'
#!/usr/bin/env node
// Stands in for a formatter: single quotes become double quotes.
const fs = require('node:fs');
const write = process.argv.includes('--write');
let wrong = 0;
for (const name of fs.readdirSync('src').sort()) {
  const text = fs.readFileSync(`src/${name}`, 'utf8');
  const after = text.replace(/'([^'"`]*)'/g, '"$1"');
  if (after === text) continue;
  wrong += 1;
  console.log(write ? `src/${name}` : `[warn] src/${name}`);
  if (write) fs.writeFileSync(`src/${name}`, after);
}
process.exit(!write && wrong ? 1 : 0);
EOF
cat > node_modules/vitest/bin/vitest <<'EOF'
#!/usr/bin/env node
// Stands in for a test runner that keeps results in node_modules/.vite.
const fs = require('node:fs');
const { total } = require(`${process.cwd()}/dist/cart`);
const good = total([1, 2, 3]) === 6;
fs.mkdirSync('node_modules/.vite/vitest', { recursive: true });
fs.writeFileSync('node_modules/.vite/vitest/results.json', JSON.stringify({ version: '2.0.0', good }));
console.log(good ? ' ✓ test/cart.test.js (2 tests)' : ' ✗ test/cart.test.js');
console.log(good ? ' Tests  2 passed (2)' : ' Tests  1 failed (2)');
process.exit(good ? 0 : 1);
EOF
chmod +x node_modules/*/bin/*
for name in typescript/bin/tsc eslint/bin/eslint prettier/bin/prettier vitest/bin/vitest; do
  ln -s "../$name" "node_modules/.bin/${name##*/}"
done
node_modules/.bin/tsc

git init -q -b main
git config user.name Ann
git config user.email ann@example.org
git add -A
git commit -q -m "Start the shop"
printf '\nexport function empty(prices: number[]): boolean {\n  return prices.length === 0;\n}\n' >> src/cart.ts
git commit -q -a -m "Say whether the cart is empty"
node_modules/.bin/tsc
