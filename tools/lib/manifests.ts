// Reads the dependencies that manifests declare. Used by ../dependency_report.tool.ts.

export type Kind = "runtime" | "development" | "build" | "optional" | "peer";

export interface Dependency {
  name: string;
  /** As it is written. */
  wanted: string;
  kind: Kind;
}

export interface Manifest {
  ecosystem: "npm" | "cargo" | "python" | "go";
  name?: string;
  dependencies: Dependency[];
}

/** Names of files that declare dependencies, and who reads them. */
export const READERS: [RegExp, (text: string) => Manifest][] = [
  [/^package\.json$/, npm],
  [/^Cargo\.toml$/, cargo],
  [/^pyproject\.toml$/, pyproject],
  [/^requirements([-_.][\w.-]+)?\.txt$/, requirements],
  [/^go\.mod$/, go],
];

function npm(text: string): Manifest {
  const manifest = JSON.parse(text) as Record<string, unknown>;
  const of = (key: string, kind: Kind): Dependency[] => {
    const table = manifest[key];
    if (typeof table !== "object" || table === null) return [];
    return Object.entries(table).map(([name, wanted]) => ({ name, wanted: String(wanted), kind }));
  };
  return {
    ecosystem: "npm",
    ...(typeof manifest["name"] === "string" ? { name: manifest["name"] } : {}),
    dependencies: [
      ...of("dependencies", "runtime"),
      ...of("devDependencies", "development"),
      ...of("optionalDependencies", "optional"),
      ...of("peerDependencies", "peer"),
    ],
  };
}

/** The sections of a TOML file as lines. Enough of TOML for manifests, which people write plainly. */
function* entries(text: string): Generator<{ section: string; key: string; value: string }> {
  let section = "";
  let open: { key: string; value: string } | undefined;
  for (const raw of text.split("\n")) {
    const line = withoutComment(raw).trim();
    if (line === "") continue;
    if (open !== undefined) {
      open.value += ` ${line}`;
    } else {
      const header = /^\[{1,2}\s*(.+?)\s*\]{1,2}$/.exec(line);
      if (header) {
        section = header[1]!.replace(/["']/g, "");
        continue;
      }
      const pair = /^("[^"]+"|'[^']+'|[\w.-]+)\s*=\s*(.*)$/.exec(line);
      if (!pair) continue;
      open = { key: pair[1]!.replace(/["']/g, ""), value: pair[2]! };
    }
    // A list or table goes on until its brackets are closed.
    const plain: string = open.value.replace(/"(?:[^"\\]|\\.)*"|'[^']*'/g, "");
    if ((plain.match(/[[{]/g)?.length ?? 0) <= (plain.match(/[\]}]/g)?.length ?? 0)) {
      yield { section, ...open };
      open = undefined;
    }
  }
}

function withoutComment(line: string): string {
  let quote = "";
  for (let at = 0; at < line.length; at += 1) {
    const c = line[at]!;
    if (quote !== "") quote = c === quote && line[at - 1] !== "\\" ? "" : quote;
    else if (c === '"' || c === "'") quote = c;
    else if (c === "#") return line.slice(0, at);
  }
  return line;
}

const text = (value: string) => /^["'](.*)["']$/.exec(value.trim())?.[1] ?? value.trim();
const strings = (value: string) => [...value.matchAll(/"((?:[^"\\]|\\.)*)"|'([^']*)'/g)].map((match) => match[1] ?? match[2] ?? "");

function cargo(source: string): Manifest {
  const dependencies: Dependency[] = [];
  let name: string | undefined;
  const kindOf = (table: string): Kind => (table.startsWith("dev-") ? "development" : table.startsWith("build-") ? "build" : "runtime");
  const version = (value: string) => (value.trim().startsWith("{") ? (/\bversion\s*=\s*["']([^"']+)/.exec(value)?.[1] ?? described(value)) : text(value));
  for (const { section, key, value } of entries(source)) {
    if (section === "package" && key === "name") name = text(value);
    // [dependencies], [target.'cfg(unix)'.dev-dependencies], [workspace.dependencies], [dependencies.serde]
    const match = /(?:^|\.)((?:dev-|build-)?dependencies)(?:\.([\w-]+))?$/.exec(section);
    if (!match) continue;
    const kind = kindOf(match[1]!);
    if (match[2] !== undefined) {
      if (key === "version") dependencies.push({ name: match[2], wanted: text(value), kind });
    } else if (/^[\w-]+\.workspace$/.test(key)) dependencies.push({ name: key.replace(/\.workspace$/, ""), wanted: "workspace", kind });
    else dependencies.push({ name: key, wanted: version(value), kind });
  }
  return { ecosystem: "cargo", ...(name === undefined ? {} : { name }), dependencies };
}

const described = (value: string) => (/\bpath\s*=/.test(value) ? "path" : /\bgit\s*=/.test(value) ? "git" : /\bworkspace\s*=\s*true/.test(value) ? "workspace" : "*");

function pyproject(source: string): Manifest {
  const dependencies: Dependency[] = [];
  let name: string | undefined;
  for (const { section, key, value } of entries(source)) {
    if (section === "project" && key === "name") name = text(value);
    if (section === "project" && key === "dependencies") dependencies.push(...strings(value).map((line) => requirement(line, "runtime")));
    if (section === "project.optional-dependencies") dependencies.push(...strings(value).map((line) => requirement(line, "optional")));
    if (section === "dependency-groups") dependencies.push(...strings(value).map((line) => requirement(line, "development")));
    if (section === "build-system" && key === "requires") dependencies.push(...strings(value).map((line) => requirement(line, "build")));
    const poetry = /^tool\.poetry\.(?:group\.([\w-]+)\.)?(dev-)?dependencies$/.exec(section);
    if (poetry && key !== "python") dependencies.push({ name: key, wanted: text(value), kind: poetry[1] !== undefined || poetry[2] !== undefined ? "development" : "runtime" });
  }
  return { ecosystem: "python", ...(name === undefined ? {} : { name }), dependencies };
}

function requirements(source: string): Manifest {
  const lines = source.split("\n").map((line) => line.replace(/(^|\s)#.*$/, "").trim());
  return { ecosystem: "python", dependencies: lines.filter((line) => line !== "" && !line.startsWith("-")).map((line) => requirement(line, "runtime")) };
}

function requirement(line: string, kind: Kind): Dependency {
  const match = /^([\w.-]+)\s*(?:\[[^\]]*\])?\s*(.*?)\s*(?:;.*)?$/.exec(line.trim());
  return { name: match?.[1] ?? line, wanted: match?.[2] || "*", kind };
}

function go(source: string): Manifest {
  const dependencies: Dependency[] = [];
  const name = /^module\s+(\S+)/m.exec(source)?.[1];
  let inBlock = false;
  for (const raw of source.split("\n")) {
    const line = raw.trim();
    if (/^require\s*\($/.test(line)) inBlock = true;
    else if (line === ")") inBlock = false;
    const match = /^(?:require\s+)?([\w./~-]+\.[\w./~-]+)\s+(v\S+)(\s*\/\/ indirect)?/.exec(line);
    if (match && (inBlock || line.startsWith("require"))) dependencies.push({ name: match[1]!, wanted: match[2]!, kind: match[3] ? "optional" : "runtime" });
  }
  return { ecosystem: "go", ...(name === undefined ? {} : { name }), dependencies };
}
