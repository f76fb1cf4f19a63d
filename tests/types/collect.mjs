// Puts all code of tools into one TypeScript project: modules as they are, the `code` of YAML files as files of their
// own with every line where it stands in the YAML, templates filled in.

import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

const [root, project] = process.argv.slice(2);
const tools = join(root, "tools");
rmSync(project, { recursive: true, force: true });
mkdirSync(project, { recursive: true });

/** The `code: |` of a YAML file, its last key or followed by others. */
function codeOf(text, file) {
  const lines = text.split("\n");
  const start = lines.findIndex((line) => /^code: \|\s*$/.test(line));
  if (start < 0) throw new Error(`${file} has no \`code: |\``);
  const out = lines.map((line, at) => {
    if (at <= start) return "";
    return line.startsWith("  ") ? line.slice(2) : line === "" ? "" : null;
  });
  const end = out.indexOf(null);
  return (end < 0 ? out : out.slice(0, end)).join("\n");
}

let count = 0;
const put = (name, text) => {
  count += 1;
  writeFileSync(join(project, name), text);
};
const filled = (text) => text.replaceAll("{{name}}", '"sample"').replaceAll("{{description}}", '"A \\"sample\\"."');

cpSync(join(tools, "runner.d.ts"), join(project, "runner.d.ts"));
cpSync(join(tools, "templates/tsconfig.json"), join(project, "tsconfig.json"));
cpSync(join(root, "tests/types/misuse.ts"), join(project, "misuse.ts"));
for (const file of readdirSync(tools)) {
  const text = () => readFileSync(join(tools, file), "utf8");
  if (file.endsWith(".yml")) put(`${file}.ts`, codeOf(text(), file));
  else if (file.endsWith(".ts") && file !== "runner.d.ts") put(file, text());
}
cpSync(join(tools, "lib"), join(project, "lib"), { recursive: true });
put("template.yml.ts", filled(codeOf(readFileSync(join(tools, "templates/tool.yml"), "utf8"), "tool.yml")));
put("template.tool.ts", filled(readFileSync(join(tools, "templates/tool.ts"), "utf8")));
const seed = join(root, "tests/all/tools/run_tests.seed.yml");
put(`seed.${basename(seed)}.ts`, codeOf(readFileSync(seed, "utf8"), seed));
console.log(`type-checking ${count} tools`);
