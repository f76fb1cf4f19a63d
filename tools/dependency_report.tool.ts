/// <reference path="./runner.d.ts" />

// What a project depends on, from the manifests it has. The reading of manifests is in lib/manifests.ts.

import { READERS, type Kind, type Manifest } from "./lib/manifests.ts";

interface Args {
  paths: string[];
  kinds: Kind[];
}

interface Declared {
  name: string;
  ecosystem: Manifest["ecosystem"];
  wanted: Record<string, string[]>;
  kinds: Kind[];
}

interface Finding {
  package: string;
  what: "different_versions" | "any_version" | "not_from_registry";
  detail: string;
}

interface Result {
  manifests: { path: string; ecosystem: string; name?: string; dependencies: number }[];
  total: number;
  byEcosystem: Record<string, number>;
  dependencies: Declared[];
  findings: Finding[];
  unreadable: { path: string; why: string }[];
}

const KINDS: Kind[] = ["runtime", "development", "build", "optional", "peer"];
const FOREIGN = /(^|\/)(node_modules|target|vendor|dist|build|\.venv|venv)\//;

export const tool: Tool<Args, Result> = {
  name: "dependency_report",
  version: "1.0.0",
  description:
    "List what a project depends on, from its manifests (package.json, Cargo.toml, pyproject.toml, requirements.txt, go.mod), merged over all packages of a " +
    "repository. Points out packages wanted in different versions, in any version, or from elsewhere than a registry. Reads manifests only, offline.",
  category: "code_analysis",
  securityTier: "read_only",
  costInfo: { model: "free" },
  documentation: "tools/README.md",
  capabilities: [{ action: "report", description: "Read manifests and merge them", requiresConfirmation: false, estimatedTime: 500 }],
  tags: ["dependencies", "manifests"],
  timeout: "1m",
  files: { read: ["**/package.json", "**/Cargo.toml", "**/pyproject.toml", "**/requirements*.txt", "**/go.mod"] },

  parameters: {
    type: "object",
    properties: {
      paths: { type: "array", items: { type: "string" }, minItems: 1, default: ["."], description: "Folders to look in, relative to the workspace" },
      kinds: { type: "array", items: { enum: KINDS }, minItems: 1, default: KINDS, description: "Which dependencies count" },
    },
    additionalProperties: false,
  },
  returnType: {
    type: "object",
    properties: {
      manifests: { type: "array" },
      total: { type: "integer", description: "Different packages" },
      byEcosystem: { type: "object", additionalProperties: { type: "integer" } },
      dependencies: { type: "array", description: "Each package once: `wanted` has each version text with the manifests that want it" },
      findings: { type: "array" },
      unreadable: { type: "array" },
    },
    required: ["manifests", "total", "byEcosystem", "dependencies", "findings", "unreadable"],
    additionalProperties: false,
  },

  async execute({ paths, kinds }, { platform: { fs }, logger }) {
    const found = new Set<string>();
    for (const folder of paths) {
      const start = folder === "." ? "" : `${folder.replace(/\/+$/, "")}/`;
      const names = await fs.glob("**/{package.json,Cargo.toml,pyproject.toml,go.mod,requirements*.txt}", { cwd: folder });
      for (const name of names) if (!FOREIGN.test(`/${name}`)) found.add(start + name);
    }
    if (found.size === 0) {
      throw Object.assign(new Error(`no manifest in ${paths.join(", ")}`), {
        code: "no_manifest",
        suggestion: "name folders that have a package.json, Cargo.toml, pyproject.toml, requirements.txt or go.mod",
      });
    }
    logger.info(`reading ${found.size} manifests`);

    const merged = new Map<string, Declared>();
    const manifests: Result["manifests"] = [];
    const unreadable: Result["unreadable"] = [];
    for (const path of [...found].sort()) {
      const reader = READERS.find(([name]) => name.test(path.split("/").at(-1)!))?.[1];
      if (reader === undefined) continue;
      let manifest: Manifest;
      try {
        manifest = reader(await fs.readFile(path));
      } catch (error) {
        if ((error as RunnerError).code === "cancelled") throw error;
        unreadable.push({ path, why: (error as Error).message });
        continue;
      }
      const counted = manifest.dependencies.filter(({ kind }) => kinds.includes(kind));
      manifests.push({ path, ecosystem: manifest.ecosystem, ...(manifest.name === undefined ? {} : { name: manifest.name }), dependencies: counted.length });
      for (const { name, wanted, kind } of counted) {
        const id = `${manifest.ecosystem} ${name}`;
        const entry = merged.get(id) ?? { name, ecosystem: manifest.ecosystem, wanted: {}, kinds: [] };
        merged.set(id, entry);
        (entry.wanted[wanted] ??= []).push(path);
        if (!entry.kinds.includes(kind)) entry.kinds.push(kind);
      }
    }

    const dependencies = [...merged.values()].sort((a, b) => (a.ecosystem + a.name < b.ecosystem + b.name ? -1 : 1));
    const byEcosystem: Record<string, number> = {};
    for (const { ecosystem } of dependencies) byEcosystem[ecosystem] = (byEcosystem[ecosystem] ?? 0) + 1;
    return { manifests, total: dependencies.length, byEcosystem, dependencies, findings: dependencies.flatMap(findingsOf), unreadable };
  },
};

function findingsOf({ name, wanted }: Declared): Finding[] {
  const out: Finding[] = [];
  const versions = Object.keys(wanted).filter((version) => version !== "workspace" && version !== "path" && !version.startsWith("workspace:"));
  if (versions.length > 1) out.push({ package: name, what: "different_versions", detail: versions.join(", ") });
  for (const version of versions) {
    if (version === "*" || version === "latest" || version === "") out.push({ package: name, what: "any_version", detail: wanted[version]!.join(", ") });
    if (/^(?:git|git\+|https?:|file:|github:)|^[\w-]+\/[\w.-]+(?:#|$)/.test(version)) out.push({ package: name, what: "not_from_registry", detail: version });
  }
  return out;
}
