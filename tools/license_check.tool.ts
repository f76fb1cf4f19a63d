/// <reference path="./runner.d.ts" />

// Which licences the installed npm packages come with, and which of them are not on a list. Schemas by zod.

import { z } from "zod";

const parameters = z.object({
  directory: z.string().default(".").describe("The folder that has node_modules, relative to the workspace"),
  allow: z
    .array(z.string().min(1))
    .default(["MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "0BSD", "Unlicense", "CC0-1.0", "BlueOak-1.0.0", "Python-2.0", "CC-BY-4.0", "Zlib"])
    .describe("Licences that are fine, as SPDX names"),
  except: z.array(z.string()).default([]).describe("Packages that were looked at and are fine, as `name` or `name@version`"),
}).strict();

const problem = z.object({
  package: z.string(),
  licence: z.string().nullable(),
  path: z.string(),
  why: z.string(),
});

const returnType = z.object({
  ok: z.boolean().describe("Whether every package has a licence of the list"),
  packages: z.number().int(),
  byLicence: z.record(z.string(), z.number().int()),
  problems: z.array(problem),
  unreadable: z.number().int().describe("Manifests that could not be read or are no JSON"),
  truncated: z.boolean(),
});

interface Manifest {
  name?: unknown;
  version?: unknown;
  license?: unknown;
  licenses?: unknown;
  private?: unknown;
}

export const tool: Tool<z.infer<typeof parameters>, z.infer<typeof returnType>> = {
  name: "license_check",
  version: "1.0.0",
  description:
    "Check the licences of all installed npm packages against a list of allowed SPDX licences. Understands expressions such as " +
    "`(MIT OR GPL-3.0-only)`. Returns counts by licence and each package that is not covered, with its path. Reads manifests only.",
  category: "code_analysis",
  securityTier: "read_only",
  costInfo: { model: "free" },
  documentation: "tools/README.md",
  capabilities: [{ action: "check", description: "Compare licences of dependencies with a list", requiresConfirmation: false, estimatedTime: 500 }],
  tags: ["licence", "license", "dependencies"],
  timeout: "1m",
  files: { read: ["**/package.json", "**/node_modules/.package-lock.json"] },
  parameters,
  returnType,

  async execute({ directory, allow, except }, { platform: { fs }, progress, logger }) {
    const modules = directory === "." ? "node_modules" : `${directory.replace(/\/+$/, "")}/node_modules`;
    const installed = (await fromLock(modules, fs)) ?? (await fromFolders(modules, fs, progress, logger));
    const allowed = new Set(allow.map((name) => name.toLowerCase()));
    const fine = new Set(except);
    const byLicence: Record<string, number> = {};
    const problems: z.infer<typeof problem>[] = [];
    for (const { name, version, licence, path } of installed.packages) {
      byLicence[licence ?? "none"] = (byLicence[licence ?? "none"] ?? 0) + 1;
      const id = `${name}@${version}`;
      if (fine.has(id) || fine.has(name)) continue;
      const why =
        licence === null ? "it names no licence" : isCovered(licence, allowed) ? undefined : /^see licen[cs]e in/i.test(licence) ? "its licence is in a file of its own" : "its licence is not on the list";
      if (why !== undefined) problems.push({ package: id, licence, path, why });
    }
    problems.sort((a, b) => (a.package < b.package ? -1 : 1));
    const order = Object.entries(byLicence).sort((a, b) => b[1] - a[1]);
    const { packages, unreadable, truncated } = installed;
    return { ok: problems.length === 0 && unreadable === 0, packages: packages.length, byLicence: Object.fromEntries(order), problems, unreadable, truncated };
  },
};

// --- what is installed ----------------------------------------------------------------------

interface Installed {
  packages: { name: string; version: string; licence: string | null; path: string }[];
  unreadable: number;
  truncated: boolean;
}

/** npm notes what it installed, licences included: one file instead of thousands. */
async function fromLock(modules: string, fs: ToolFileSystem): Promise<Installed | undefined> {
  let lock: { packages?: Record<string, Manifest & { link?: boolean }> };
  try {
    lock = JSON.parse(await fs.readFile(`${modules}/.package-lock.json`));
  } catch (error) {
    if (error instanceof SyntaxError || (error as RunnerError).code === "not_found") return undefined;
    throw error;
  }
  const entries = Object.entries(lock.packages ?? {}).filter(([path, entry]) => path.includes("node_modules/") && entry.link !== true);
  const packages = entries.map(([path, entry]) => ({
    name: typeof entry.name === "string" ? entry.name : path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length),
    version: String(entry.version),
    licence: licenceOf(entry),
    path: modules.replace(/node_modules$/, "") + path,
  }));
  return { packages, unreadable: 0, truncated: false };
}

/** Other installers leave no such note: then every manifest is read. */
async function fromFolders(modules: string, fs: ToolFileSystem, progress: ToolContext["progress"], logger: ToolLogger): Promise<Installed> {
  let paths: ToolList<string>;
  try {
    // A package is a folder right below a node_modules, or below a scope in one.
    paths = await fs.glob("{*,@*/*,**/node_modules/*,**/node_modules/@*/*}/package.json", { cwd: modules, dot: true });
  } catch (error) {
    if ((error as RunnerError).code !== "not_found") throw error;
    throw Object.assign(new Error(`there is no ${modules}: nothing is installed`), {
      code: "not_installed",
      suggestion: "install the packages first, or name another directory",
    });
  }
  const out: Installed = { packages: [], unreadable: 0, truncated: paths.truncated };
  const look = async (path: string) => {
    const full = `${modules}/${path}`;
    let manifest: Manifest;
    try {
      manifest = JSON.parse(await fs.readFile(full)) as Manifest;
    } catch (error) {
      const { code } = error as RunnerError;
      if (code === "limit_reached" || code === "cancelled") throw error;
      out.unreadable += 1;
      logger.warn(`${full} cannot be read`, { why: (error as Error).message });
      return;
    }
    // Manifests inside a package (for subpaths, tests) name no package of their own.
    if (typeof manifest.name !== "string" || typeof manifest.version !== "string") return;
    out.packages.push({ name: manifest.name, version: manifest.version, licence: licenceOf(manifest), path: full });
  };
  const GROUP = 100;
  for (let at = 0; at < paths.length; at += GROUP) {
    await Promise.all(paths.slice(at, at + GROUP).map(look));
    progress(Math.min(1, (at + GROUP) / paths.length), `${out.packages.length} packages`);
  }
  return out;
}

// --- licences -------------------------------------------------------------------------------

/** The licence as today's manifests write it, or as old ones did. */
function licenceOf({ license, licenses }: Manifest): string | null {
  const name = (value: unknown): string | null =>
    typeof value === "string" && value.trim() !== "" ? value.trim() : typeof value === "object" && value !== null && "type" in value ? name(value.type) : null;
  if (Array.isArray(license ?? licenses)) {
    const names = ((license ?? licenses) as unknown[]).map(name).filter((one) => one !== null);
    return names.length === 0 ? null : names.length === 1 ? names[0]! : `(${names.join(" OR ")})`;
  }
  return name(license) ?? name(licenses);
}

/** Whether an SPDX expression can be met with the listed licences: one side of OR, both sides of AND. */
function isCovered(expression: string, allowed: Set<string>): boolean {
  const words = expression.match(/[()]|[^\s()]+/g) ?? [];
  let at = 0;
  const either = (): boolean => {
    let covered = both();
    while (/^or$/i.test(words[at] ?? "")) {
      at += 1;
      const other = both();
      covered = covered || other;
    }
    return covered;
  };
  const both = (): boolean => {
    let covered = one();
    while (/^and$/i.test(words[at] ?? "")) {
      at += 1;
      const other = one();
      covered = covered && other;
    }
    return covered;
  };
  const one = (): boolean => {
    const word = words[at] ?? "";
    at += 1;
    if (word === "(") {
      const covered = either();
      at += 1;
      return covered;
    }
    let covered = allowed.has(word.toLowerCase());
    if (/^with$/i.test(words[at] ?? "")) {
      // An exception only ever gives more rights.
      covered = covered || allowed.has(`${word} with ${words[at + 1] ?? ""}`.toLowerCase());
      at += 2;
    }
    return covered;
  };
  const covered = either();
  // What is left over was no expression.
  return covered && at >= words.length;
}
