/**
 * Writes `manifest.json` beside the build: digests of the sources and of each built file.
 *
 * A test in Python compares it with both, so that nobody needs Node to see that the build belongs to the sources.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const built = `${here}../tamis_registry/console/`;
const SOURCES = ["index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", "src", "public"];

/** The paths of all files below some paths of a folder, in the order of their code units. */
function files(folder, paths) {
  return paths
    .flatMap((path) => {
      const below = readdirSync(folder, { withFileTypes: true }).find((entry) => entry.name === path.split("/").at(-1));
      if (below?.isDirectory()) return files(`${folder}${path}/`, readdirSync(`${folder}${path}`)).map((one) => `${path}/${one}`);
      return [path];
    })
    .sort();
}

const digest = (path) => createHash("sha256").update(readFileSync(path)).digest("hex");
const table = (folder, paths) => Object.fromEntries(paths.map((path) => [path, digest(`${folder}${path}`)]));

const manifest = {
  sources: table(here, files(here, SOURCES)),
  built: table(built, files(built, readdirSync(built).filter((name) => name !== "manifest.json"))),
};
writeFileSync(`${built}manifest.json`, `${JSON.stringify(manifest, null, 1)}\n`);
